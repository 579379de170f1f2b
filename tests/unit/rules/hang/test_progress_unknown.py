"""progress-unknown: a script that is over has nothing to progress with."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.record_cases import saved_case
from unstuck.rules.hang import progress_unknown

NAME = "spin-line-search"


def test_an_interpreter_that_is_taken_down_is_no_standstill() -> None:
    case = saved_case(NAME)
    over = replace(case, stalls=tuple(replace(stall, phase="ended") for stall in case.stalls))
    assert len(list(progress_unknown.decide(case))) == 1
    assert list(progress_unknown.decide(over)) == []
