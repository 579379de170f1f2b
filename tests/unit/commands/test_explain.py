"""`explain`: a page about each rule, and help for a name that is nearly right."""

from __future__ import annotations

import sys
import types

import pytest

from unstuck import rules
from unstuck.commands import main
from unstuck.rules.rule import Rule

PAGE = """file-lock-held: waits for a file lock that somebody else holds.

What it sees
    A thread blocked in flock, for a long and long and long and long and long and long and long time
    on a file.

    - one thing
    - another thing
      over two lines

Why training stops
    Each waits for the other.

Fix
    Release it:

        with lock:
            pass
"""


@pytest.fixture(autouse=True)
def _two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name, family, page in (
        ("file-lock-held", "hang", PAGE),
        ("endless-epoch", "loop", "endless-epoch: it goes on."),
    ):
        module = types.ModuleType(f"made_{family}", page)
        exec("def decide(case): return []", module.__dict__)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        made.append(Rule(name, family, module.decide))
    monkeypatch.setattr(rules, "RULES", tuple(made))


def test_all_rules_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "hang  nothing moves" in lines
    assert "  file-lock-held  waits for a file lock that somebody else holds." in lines
    assert lines.index("loop  it never ends") < lines.index("  endless-epoch   it goes on.")


@pytest.mark.parametrize("words", [["file-lock-held"], ["File", "lock", "held"], ["file_lock_held"]])
def test_the_page_of_a_rule(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\n  What it sees\n" in text
    assert "long time on a file." in " ".join(text.split())
    assert "    • another thing over two lines\n" in text
    assert "            with lock:\n                pass\n" in text


def test_an_unknown_rule_brings_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "filelock-held"]) == 2
    said = capsys.readouterr().err
    assert "no rule filelock-held" in said
    assert "did you mean file-lock-held?" in said


def test_a_part_of_a_name_is_enough_to_be_pointed_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "lock"]) == 2
    assert "did you mean file-lock-held?" in capsys.readouterr().err
