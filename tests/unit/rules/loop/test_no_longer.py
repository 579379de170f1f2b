"""Counters that end a loop and have stopped rising: real code, described in rounds that make a step or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.rules.loop import described_loops
from tests.unit.rules.loop.test_stop_condition_never_met import judged
from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Frame, Thread
from unstuck.rules.loop.no_longer import skipped

MOMENTS = (8, 16, 24, 32, 40, 150, 250, 400, 560)  # a step is made in each of the first forty rounds
LOOP = """
    class Steps:
        def __init__(self): self.made, self.buffer = 0, []
        def ready(self): return self.made < 40
        def epoch(self, rounds, step_made):
            for i in range(8 if rounds < 40 else 3):
                if (i + 1) % 8 == 0:
                    self.made += 1
                    step_made()
    def train(step_made, most=50):
        steps, rounds, step, buffer, best = Steps(), 0, 0, [], 9
        while {}:
            rounds += 1
            hard = [0] * (40 - rounds)
            {}
"""
TEST = "step < most"
ENDLESS = {
    "passed over": (TEST, "if len(hard) == 0: no_step(); continue\n            step += 1; step_made()"),
    "where it is found": (TEST, "if not hard: no_step()\n            if hard: step += 1; step_made()"),
    "of an epoch": ("steps.made < most", "steps.epoch(rounds, step_made)\n            if rounds >= 40: no_step()"),
}
STEPS_GO_ON = "step_made()\n            if not hard and rounds > 40: continue\n            step += 1"
MAY_RISE = {
    "the model changes": (TEST, STEPS_GO_ON),
    "a buffer is filled": (
        TEST,
        "buffer.append(rounds)\n            if 40 < len(buffer) < 999: no_step(); continue\n"
        "            step += 1; step_made()",
    ),
    "somebody is asked": (TEST, "if not steps.ready(): no_step(); continue\n            step += 1; step_made()"),
    "something else is waited for": (
        TEST,
        "if len(steps.buffer) < 1 and rounds > 40: no_step(); continue\n            step += 1; step_made()",
    ),
    "it ends by itself": ("rounds < 580", "if not hard and rounds > 40: no_step(); continue\n            step_made()"),
    "it never rose": (TEST, "if rounds < 9000: no_step(); continue\n            step += 1; step_made()"),
    "rarely": (TEST, "if rounds % 90: no_step(); continue\n            step += 1; step_made()"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_names_what_no_longer_rises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(described_loops, "DESCRIBED", MOMENTS)
    found, rounds = judged(tmp_path, LOOP.format(*ENDLESS[name]))
    assert rounds == described_loops.STEPS
    assert ["no longer rises" in each.title for each in found] == [True]


@pytest.mark.parametrize("name", MAY_RISE)
def test_is_silent_where_it_may_rise_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(described_loops, "DESCRIBED", MOMENTS)
    assert judged(tmp_path, LOOP.format(*MAY_RISE[name]))[0] == []


STEPS_BEFORE = """
    def train(step_made, most=99):
        steps, rounds = {}, 0
        for _ in range(30): step_made()
        while steps < most:
            rounds += 1
            hard = [0] * {}
            if not hard:
                no_step()
                continue
            steps += 1
            step_made()
"""


@pytest.mark.parametrize(("begins", "hard", "named"), [(30, 0, True), (3, 0, False), (64, 0, False)])
def test_it_stood_at_the_first_reading_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: int, hard: int, named: bool
) -> None:
    """By what was counted until then: so many steps, and no more than were made."""
    monkeypatch.setattr(described_loops, "DESCRIBED", (32, 40, 100, 200, 300, 400, 560))
    found, _ = judged(tmp_path, STEPS_BEFORE.format(begins, hard))
    assert ["no longer rises" in each.title for each in found] == [True] * named


# --- where no seam is passed, by stacks ------------------------------------------------------------------------------

CASE = "stop-skips-what-is-learned"
LOOP_LINE, RAISING = 27, 43


def moved(case: Case, change: Callable[[int, Frame], Frame]) -> Case:
    """The same, with the loop's own frames as they are changed: by the number of the look."""

    def thread(number: int, each: Thread) -> Thread:
        own = (change(number, frame) if frame.loop and frame.loop[0] == LOOP_LINE else frame for frame in each.frames)
        return replace(each, frames=tuple(own))

    looks = []
    for number, look in enumerate(case.looks):
        processes = (
            replace(process, threads=tuple(thread(number, each) for each in process.threads))
            for process in look.processes
        )
        looks.append(replace(look, processes=tuple(processes)))
    return replace(case, looks=tuple(looks))


def test_a_loop_that_passes_over_what_ends_it() -> None:
    (found,) = skipped(saved_case(CASE))
    assert found.statement.line == RAISING


CHANGES: dict[str, Callable[[int, Frame], Frame]] = {
    "it comes to the line": lambda number, frame: replace(frame, line=RAISING + 1) if number == 2 else frame,
    "one call that lasts": lambda _, frame: replace(frame, line=LOOP_LINE + 1),
    "a loop inside it": lambda _, frame: replace(frame, loop=(LOOP_LINE + 1, LOOP_LINE + 2)),
    "elsewhere": lambda _, frame: replace(frame, line=RAISING + 40, loop=None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_stacks_that_show_no_such_loop(name: str) -> None:
    assert not list(skipped(moved(saved_case(CASE), CHANGES[name])))


def test_a_run_that_made_no_steps_before() -> None:
    case = saved_case(CASE)
    assert not list(skipped(replace(case, flights=tuple(replace(each, step=9) for each in case.flights))))
