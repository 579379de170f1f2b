"""Fixes and evidence in the names of the library that writes the loop."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, get_args

import pytest

from unstuck.model import Case, Finding, Fix, Setting, Where
from unstuck.recorder.records.loops import LibraryLoop, LibraryName
from unstuck.rules import rule_named
from unstuck.rules.library_words import NAMES, REMEDIES, WORDS, in_library_words
from unstuck.rules.remedies import GUARD


def finding(step: int | None = None, fix: Fix | str = "Mend it.", rule: str = "exploding-gradient") -> Finding:
    known = rule_named(rule)
    assert known is not None
    where = Where("train.py", 3, "f", pid=7, step=step)
    return known.finding(severity="error", confidence=0.9, title="t", evidence=("e",), where=where, fix=fix)


def loop(step: int, epoch: int | None = 0, global_step: int | None = None, **more: Any) -> LibraryLoop:
    return LibraryLoop(
        library=more.pop("library", "lightning"), pid=7, step=step, epoch=epoch, global_step=global_step, **more
    )


CLIP = Fix("Clip the gradient.", setting="clipping", value="1.0")


def test_a_bare_loop_is_left_as_it_is() -> None:
    plain = finding(3, CLIP)
    assert in_library_words(Case(), plain) is plain


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("lightning", "In Lightning: `Trainer(gradient_clip_val=1.0)`."),
        ("transformers", "In the Trainer of transformers: `TrainingArguments(max_grad_norm=1.0)`."),
        ("accelerate", "`accelerator.clip_grad_norm_(model.parameters(), 1.0)`"),
        ("ignite", "`Engine(update)`"),
        ("fastai", "`Learner(…, cbs=GradientClip(1.0))`"),
    ],
)
def test_a_setting_has_the_library_s_name(library: LibraryName, words: str) -> None:
    named = in_library_words(Case(library_loops=(loop(0, library=library),)), finding(fix=CLIP))
    assert named.fix.text.startswith("Clip the gradient. In ")
    assert words in named.fix.text


def test_every_word_can_be_filled_in() -> None:
    for library in get_args(LibraryName):
        for setting in get_args(Setting):
            named = in_library_words(
                Case(library_loops=(loop(0, library=library),)), finding(fix=Fix("Do it.", setting=setting))
            )
            assert named.fix.text == "Do it." or named.fix.text.startswith(f"Do it. In {NAMES[library]}: `")
            assert "{" not in named.fix.text.replace('{"scheduler"', "")


def test_steps_and_epochs_are_the_library_s() -> None:
    """Resumed at 5,000: its steps are not ours; the epoch is that of the last pass which began before."""
    loops = (loop(0, 4, 5000), loop(94, 5, 5094, metrics=["train_loss", "val_loss"]), loop(188, 6, 5188))
    named = in_library_words(Case(library_loops=loops), finding(100))
    assert named.evidence == ("e", "in Lightning: epoch 5, global_step 5,100; it logs train_loss, val_loss")


def test_an_epoch_that_was_not_noted_is_not_guessed() -> None:
    named = in_library_words(Case(library_loops=(loop(0, 4, 0), loop(900, 9, 900))), finding(500))
    assert named.evidence[-1] == "in Lightning: global_step 500"


def test_a_library_without_counts_adds_no_evidence() -> None:
    loops = (loop(0, None, None, library="accelerate"),)
    assert in_library_words(Case(library_loops=loops), finding(5)).evidence == ("e",)


def test_loops_of_another_process_are_not_mixed_in() -> None:
    other = replace(loop(0, 1, 70), pid=8)
    named = in_library_words(Case(library_loops=(loop(0, 4, 5000), other)), finding(2))
    assert "global_step 5,002" in named.evidence[-1]


def test_a_remedy_for_a_loop_of_one_s_own_is_said_differently() -> None:
    assert finding().fix.diff == GUARD
    named = in_library_words(Case(library_loops=(loop(0),)), finding())
    assert "configure_optimizers" in (named.fix.diff or "")
    assert in_library_words(Case(library_loops=(loop(0, library="fastai"),)), finding()).fix.diff is None
    assert in_library_words(Case(library_loops=(loop(0, library="accelerate"),)), finding()).fix.diff == GUARD


CALLS = {  # what the words call: where that is, in the real package
    "lightning": {"Trainer": "lightning.pytorch:Trainer"},
    "transformers": {"TrainingArguments": "transformers:TrainingArguments", "Trainer": "transformers:Trainer"},
    "accelerate": {
        "Accelerator": "accelerate:Accelerator",
        "DistributedDataParallelKwargs": "accelerate:DistributedDataParallelKwargs",
    },
    "ignite": {
        "create_supervised_trainer": "ignite.engine:create_supervised_trainer",
        "trainer.run": "ignite.engine:Engine.run",
        "evaluator.run": "ignite.engine:Engine.run",
    },
    "fastai": {"Learner": "fastai.learner:Learner", "learn.fit": "fastai.learner:Learner.fit"},
}


@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore")  # of these packages, when they are imported
@pytest.mark.parametrize("library", CALLS)
def test_the_real_package_takes_these_names(library: LibraryName) -> None:
    import ast
    import re

    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    texts = [words.format(value="1") for words in WORDS[library].values()]
    texts += [f"`{line[1:]}`" for diff in REMEDIES.get(library, {}).values() if diff for line in diff.splitlines()]
    checked = 0
    for code in re.findall(r"`([^`]*)`", " ".join(texts)):
        try:
            tree = ast.parse(code.replace("…", "...").replace("(..., ", "(").partition("  #")[0].strip())
        except SyntaxError:
            continue  # `with …:`
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            place = CALLS[library].get(ast.unparse(call.func))
            if place is None:
                continue
            module, _, path = place.partition(":")
            thing: Any = import_module(module)
            for name in path.split("."):
                thing = getattr(thing, name)
            assert {word.arg for word in call.keywords if word.arg} <= set(signature(thing).parameters), code
            checked += 1
    assert checked
