"""eval-mode-while-training: the optimizer steps while the model is in eval mode.

What it sees
    Steps whose forward pass ran with dropout off and batch norm on its stored statistics, because the whole model was
    in eval mode: after a validation that did not switch it back, or from the start. Or only its batch norms are, in a
    model that begins from scratch: their statistics are still the first ones, mean 0 and variance 1.

Why it matters
    No error shows. Without dropout the model overfits; batch norm neither normalizes by the batch nor updates the
    statistics it will use later.

Evidence
    From which step on, which modules, and whether the model was in training mode before.

Fix
    `model.train()` at the beginning of each training epoch.

When it is wrong
    Batch norm that is kept in eval mode on purpose while the rest of the model trains is not reported where it has
    statistics of its own, from a checkpoint or an earlier training; nor is a model that is in eval mode in some steps
    only, as in adversarial training.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, Mode
from unstuck.rules.rule import Rule
from unstuck.rules.training import line, loss_site, quoted, where

MIN_EVAL_STEPS = 3  # observed in a row, up to now


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for name, history in learning.modes.items():
            since = _eval_since(history)
            if since is None:
                if _has_fresh_norms_only(history):
                    yield _fresh_norms(learning, name, history)
                continue
            before, late = history[:since], history[since:]
            now = late[-1]
            norms_only = all("Norm" in kind for kind in now.kinds)
            if not before and not now.never_updated and (now.frozen or norms_only):
                continue  # a pretrained model with its norms kept as they are
            yield _finding(learning, name, before, late)


def _eval_since(history: list[Mode]) -> int | None:
    """Index in the history from which on the whole model was in eval mode; None: it is not."""
    since = len(history)
    while since and not history[since - 1].training and history[since - 1].idle == history[since - 1].of:
        since -= 1
    before, late = history[:since], history[since:]
    in_turns = any(not mode.training for mode in before) and len(before) > len(late)
    return None if len(late) < MIN_EVAL_STEPS or in_turns else since


def _has_fresh_norms_only(history: list[Mode]) -> bool:
    """All that is in eval mode, in a model that never was: no norm there brings statistics of its own."""
    always = len(history) >= MIN_EVAL_STEPS and all(mode.training and mode.idle for mode in history)
    return always and history[-1].never_updated == history[-1].idle


def _fresh_norms(learning: Learning, name: str, history: list[Mode]) -> Finding:
    first, now = history[0].step, history[-1]
    site = learning.eval_site or loss_site(learning)
    return RULE.finding(
        severity="warning",
        confidence=0.9,
        title=f"The batch norms of `{name}` are in eval mode and were never updated: they do not normalize",
        evidence=(
            f"in all {len(history)} steps observed from step {first:,} on, {now.idle} of the {now.of} dropouts and "
            f"norms of `{name}` ({quoted(now.kinds)}) were in eval mode, while `{name}` itself was in training mode",
            "their statistics are those they were made with, mean 0 and variance 1: what goes in comes out as it is",
        ),
        where=where(learning, site, step=first),
        fix=f"Leave the norms in training mode where the model begins from scratch ({line(site)}); eval mode is for "
        "statistics that come from a checkpoint.",
    )


def _finding(learning: Learning, name: str, before: list[Mode], late: list[Mode]) -> Finding:
    first, now = late[0].step, late[-1]
    certain = bool(before) or now.never_updated > 0
    site = loss_site(learning)
    history = ""
    if before:
        history = f"it was in training mode up to step {before[-1].step:,}; something switched it to eval mode since"
    elif now.never_updated:
        history = "its batch norm statistics were never updated: it does not normalize at all"
    return RULE.finding(
        severity="error" if certain else "warning",
        confidence=0.93 if certain else 0.7,
        title=f"`{name}` trains in eval mode" + (f" since about step {first:,}" if before else ""),
        evidence=(
            f"in all {len(late)} steps observed from step {first:,} on, `{name}` was in eval mode, and its "
            f"{quoted(now.kinds)} with it ({now.of} module{'s' * (now.of != 1)})",
            history,
        ),
        where=where(learning, (None if before else learning.eval_site) or site, step=first),
        fix=f"Call `{name.partition('.')[0]}.train()` at the start of each training epoch ({line(site)}).",
    )


RULE = Rule("eval-mode-while-training", "learning", decide, explains=frozenset(("vanishing-gradient",)), gathers=True)
