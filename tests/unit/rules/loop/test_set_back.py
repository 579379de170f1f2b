"""Loops that end when a time has come, and what puts that off: real code by a clock of its own, a second a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.loop.test_stop_condition_never_met import judged

LOOP = """
    class Watch:
        def __init__(self): self.begun = clock()
        def restart(self): self.begun = clock()
        def spent(self): return clock() - self.begun
    def train(step_made, budget=60.0):
        watch, begun, now, step, spent, best, calm = Watch(), clock(), 0.0, 0, 0.0, 9e9, 0
        until = clock() + budget
        while {}:
            step_made()
            step += 1
            loss = 1 / step
            now = clock()
            spent = now - begun
            {}
"""
ENDLESS = {
    "at each log": ("spent < budget", "if step % 10 == 0: begun = clock()"),
    "with another name": ("spent < budget", "if step % 10 == 0: mark = begun = clock()"),
    "in every round": ("spent < budget", "begun = now"),
    "a deadline": ("clock() < until", "if step % 10 == 0: until = clock() + budget"),
    "a deadline, the other way round": ("until > clock()", "if step % 10 == 0: until = now + budget"),
    "in the test": ("clock() - begun <= budget", "if step % 10 == 0: begun = now"),
    "at a break": ("True", "if step % 10 == 0: begun = now\n            if now - begun > 60: break"),
    "as time passes": ("True", "if now - begun > 9: begun = now\n            if now - begun > 60: break"),
}
MAY_END = {
    "what lasts longer than it was watched": ("clock() - begun < 9000", "if step % 10 == 0: begun = now"),
    "patience in seconds": ("clock() - begun < budget", "if loss < best: best, begun = loss, now"),
    "that and rounds": ("clock() - begun < budget", "if step % 10 == 0 and loss < best: best, begun = loss, now"),
    "a method's own": ("watch.spent() < budget", "if loss < best: watch.restart()"),
    "of a single round": ("True", "begun = clock()\n            if clock() - begun > 60: break"),
    "nothing sets it": ("step < 10**9", "if now - begun > 10**6: break"),
    "another way out": ("spent < budget", "begun = now\n            if loss < 1e-9: break"),
    "so many times": ("spent < budget", "if calm < 5: calm, begun = calm + 1, now"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_names_what_puts_the_end_off(tmp_path: Path, name: str) -> None:
    ((finding,), _) = judged(tmp_path, LOOP.format(*ENDLESS[name]))
    assert "begins the time anew" in finding.title
    assert finding.where.line in (15, 16)


@pytest.mark.parametrize("name", MAY_END)
def test_is_silent_where_the_time_may_come(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, LOOP.format(*MAY_END[name]))[0] == []
