"""Own processes and threads that work one after the other: what must not be taken for a loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Finding, Turns
from unstuck.rules.pace import workers_take_turns

PROCESSES = saved_case("pace-simulators-asked-in-turn")
THREADS = saved_case("pace-future-waited-for-at-once")


def said(case: Case) -> list[Finding]:
    return [each for each in workers_take_turns.decide(case) if isinstance(each, Finding)]


def turns_of(case: Case) -> Turns:
    return next(strain.turns for strain in case.strains if strain.turns is not None)


def with_turns(case: Case, **change: Any) -> Case:
    turns = replace(turns_of(case), **change)
    return replace(case, strains=tuple(replace(strain, turns=turns) for strain in case.strains))


def with_strain(case: Case, **change: Any) -> Case:
    return replace(case, strains=tuple(replace(strain, **change) for strain in case.strains))


@pytest.mark.parametrize(("case", "who"), [(PROCESSES, "processes"), (THREADS, "threads")])
def test_names_the_line_that_waits(case: Case, who: str) -> None:
    (finding,) = said(case)
    assert finding.severity == "warning"
    assert finding.where.line == turns_of(case).line.line
    assert f"own {who} take turns" in finding.title
    assert finding.evidence[-1].endswith("as fast if all of them worked at the same time")


@pytest.mark.parametrize(
    "change",
    [{"helpers": 1}, {"alone": 40, "seen": 80}, {"alone": 8, "seen": 8}],
    ids=["one-helper", "side-by-side", "hardly-seen"],
)
def test_nothing_to_gain_or_to_see(change: dict[str, Any]) -> None:
    assert not said(with_turns(PROCESSES, **change))


def test_a_wait_that_is_a_small_part() -> None:
    assert not said(with_turns(PROCESSES, line=replace(turns_of(PROCESSES).line, share=0.2)))


def test_the_loop_around_the_step_may_need_the_new_model() -> None:
    frame = PROCESSES.loop_snapshots[0].frames[0]
    loop, line = frame.loops[0], replace(turns_of(PROCESSES).line, file=frame.file)
    assert not said(with_turns(PROCESSES, line=line, loop=(loop.first, loop.last)))


def test_processes_that_compute_need_cores() -> None:
    assert said(with_strain(PROCESSES, cpu=1.0, training=0.05, cores=4.0, others=0.0))
    assert not said(with_strain(PROCESSES, cpu=1.0, training=0.05, cores=1.0, others=0.0))
    assert not said(with_strain(PROCESSES, cpu=1.0, training=0.05, cores=4.0, others=3.0))


def test_threads_that_compute_may_need_the_interpreter() -> None:
    assert not said(with_strain(THREADS, cpu=1.0, training=1.0, cores=4.0, others=0.0))
