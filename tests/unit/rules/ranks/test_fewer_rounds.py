"""Fewer rounds than the others: told by the loops around the steps, and only where nothing else can have led there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.unit.rules.record_cases import saved_case
from unstuck.model import Case, Flight, Frame
from unstuck.recorder.records.loops import DescribedLoop, WayOut
from unstuck.rules.diagnose import diagnose

BUDGET, POPULATION, PATIENCE = "ranks-token-budget", "ranks-population-of-three", "ranks-own-patience"


def errors(case: Case) -> list[tuple[str, int | None]]:
    return [(f.rule, f.where.rank) for f in diagnose(case).findings if f.severity == "error"]


def with_frames(case: Case, function: str, change: Callable[[Frame], Frame]) -> Case:
    """Every frame of that function in the looks."""
    looks = []
    for look in case.looks:
        processes = []
        for process in look.processes:
            threads = (
                replace(t, frames=tuple(change(f) if f.function == function else f for f in t.frames))
                for t in process.threads
            )
            processes.append(replace(process, threads=tuple(threads)))
        looks.append(replace(look, processes=tuple(processes)))
    return replace(case, looks=tuple(looks))


def with_loops(case: Case, change: Callable[[DescribedLoop], None]) -> Case:
    for snapshot in case.loop_snapshots:
        for frame in snapshot.frames:
            for loop in frame.loops:
                change(loop)
    return case


def with_flights(case: Case, change: Callable[[Flight], Flight]) -> Case:
    return replace(
        case, flights=tuple(change(flight) if flight.rank is not None else flight for flight in case.flights)
    )


def test_which_rank_has_which_number_does_not_matter() -> None:
    for name, rule in ((BUDGET, "uneven-batches"), (PATIENCE, "rank-exited-early")):
        case = saved_case(name)
        other = with_flights(case, lambda flight: replace(flight, rank=1 - (flight.rank or 0)))
        ((said, rank),), ((said_of_other, other_rank),) = errors(case), errors(other)
        assert (said, said_of_other) == (rule, rule)
        assert {rank, other_rank} == {0, 1}


def test_not_uneven_where_the_others_may_have_gone_round_the_call() -> None:
    case = with_frames(saved_case(BUDGET), "everywhere", lambda frame: replace(frame, guards=(frame.line - 2,)))
    assert errors(case) == [("collectives-differ", 1)]
    case = with_frames(saved_case(BUDGET), "everywhere", lambda frame: replace(frame, arms=((frame.line - 1, 0),)))
    assert "uneven-batches" not in [rule for rule, _ in errors(case)]


def test_not_uneven_where_the_loop_can_be_left_before_its_end() -> None:
    def ends_early(loop: DescribedLoop) -> None:
        loop.exits = [WayOut(line=loop.last, kind="break")]  # type: ignore[misc]  # of a fresh copy

    saved_case.cache_clear()
    case = with_loops(saved_case(BUDGET), ends_early)
    saved_case.cache_clear()
    assert "uneven-batches" not in [rule for rule, _ in errors(case)]


def test_a_script_that_ends_well_though_its_ranks_died() -> None:
    case = saved_case(POPULATION)
    assert case.outcome == "finished"
    assert errors(case) == [("rank-exited-early", 0)]
    assert errors(replace(case, deaths=())) == [], "no rank died"


def test_ranks_that_were_started_anew_since_are_no_matter() -> None:
    case = saved_case(POPULATION)
    late = max(died.at for died in case.deaths) + 1
    anew = with_flights(case, lambda f: replace(f, forming=late, formed=late) if f.rank == 0 else f)
    assert errors(anew) == []
