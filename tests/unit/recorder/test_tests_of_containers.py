"""A `while` whose test reads nothing that its body changes never ends by it."""

from __future__ import annotations

import ast
import textwrap

import pytest

from unstuck.recorder.probes.loops.stays_true import stays_true


def judged(body: str, test: str = "len(waiting) >= self.size", before: str = "waiting = sorted(self.groups)") -> bool:
    lines = f"def __iter__(self):\n    {before}\n    while {test}:\n" + textwrap.indent(textwrap.dedent(body), " " * 8)
    (function,) = ast.parse(lines).body
    assert isinstance(function, ast.FunctionDef)
    loop = next(node for node in ast.walk(function) if isinstance(node, ast.While))
    return stays_true(loop, function)


def test_nothing_changes_it() -> None:
    assert judged("yield self.rng.sample(waiting, self.size)")
    assert judged("for at in waiting:\n    yield at")


@pytest.mark.parametrize(
    "body",
    [
        "waiting = waiting[1:]\nyield 1",
        "waiting.pop()\nyield 1",
        "waiting.remove(3)\nyield 1",
        "del waiting[0]\nyield 1",
        "waiting[:4] = []\nyield 1",
        "drop(waiting)\nyield 1",
        "other = waiting\nother.pop()\nyield 1",
        "yield waiting",
        "self.size += 1\nyield 1",
        "self.next_group()\nyield 1",
    ],
)
def test_something_may(body: str) -> None:
    assert not judged(body)


def test_what_others_hold_may_be_changed_by_them() -> None:
    assert not judged("yield 1", before="waiting = self.waiting")
    assert not judged("yield 1", test="self.open", before="waiting = []")
    assert not judged("yield 1", test="not done(waiting)")
