"""Run folders of several machines: one clock, one world, one answer; and what does not belong together is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.rules.record_cases import saved_case

from unstuck.errors import UsageError
from unstuck.model import Case
from unstuck.report import merged as merging
from unstuck.report import terminal
from unstuck.report.saved import Saved
from unstuck.report.screen import Screen
from unstuck.rules.diagnose import diagnose

AWAY = 5000.0  # seconds by which the clock of the second machine is ahead


def whole() -> Case:
    return saved_case("ranks-metric-of-the-first")


def part(case: Case, *ranks: int) -> Case:
    """What a machine with these ranks would have saved."""
    gone = {f.pid for f in case.flights if f.rank is not None and f.world and f.rank not in ranks}
    looks = tuple(replace(k, processes=tuple(p for p in k.processes if p.pid not in gone)) for k in case.looks)
    return replace(
        case,
        flights=tuple(flight for flight in case.flights if flight.pid not in gone),
        stalls=tuple(stall for stall in case.stalls if stall.pid not in gone),
        worlds_joined=tuple(joined for joined in case.worlds_joined if joined.pid not in gone),
        looks=looks,
    )


def away(case: Case) -> Case:
    """As saved by a machine that was started earlier: its clock is ahead, and wall-clock time is the same."""
    return replace(merging._moved(case, {}, AWAY), clock_offset=case.clock_offset - AWAY)


def saved(name: str, case: Case) -> Saved:
    return Saved(Path(name), case)


def test_two_machines_give_the_answer_of_one() -> None:
    first, second = part(whole(), 0), away(part(whole(), 1, 2))
    assert "ranks" not in {f.family for f in diagnose(first).findings}  # alone it proves nothing
    case = merging.merged([saved("a", first), saved("b", second)])
    expected, found = diagnose(whole()).findings[0], diagnose(case).findings[0]
    assert (found.rule, found.title, found.where.rank) == (expected.rule, expected.title, expected.where.rank)


def test_clocks_are_aligned_on_what_ranks_did_together() -> None:
    second = away(part(whole(), 1, 2))
    case = merging.merged([saved("a", part(whole(), 0)), saved("b", second)])
    before = {f.rank: f.formed for f in whole().flights if f.formed}
    after = {f.rank: f.formed for f in case.flights if f.formed}
    assert after == pytest.approx(before, abs=0.5)


def test_processes_of_two_machines_may_have_the_same_number() -> None:
    case = merging.merged([saved("a", part(whole(), 0)), saved("b", part(whole(), 1, 2))])
    pids = [flight.pid for flight in case.flights]
    assert len(set(pids)) == len(pids)


@pytest.mark.parametrize("ranks", [(0,), (0, 1)])
def test_a_rank_in_two_folders_is_refused(ranks: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="rank 0 is in a and in b"):
        merging.merged([saved("a", part(whole(), 0)), saved("b", part(whole(), *ranks))])


def test_worlds_of_other_sizes_are_refused() -> None:
    second = part(whole(), 1, 2)
    second = replace(second, flights=tuple(replace(f, world=5) if f.world else f for f in second.flights))
    with pytest.raises(UsageError, match="different runs"):
        merging.merged([saved("a", part(whole(), 0)), saved("b", second)])


def test_a_folder_without_ranks_is_refused() -> None:
    with pytest.raises(UsageError, match="b has no ranks"):
        merging.merged([saved("a", whole()), saved("b", Case())])


def test_a_machine_that_nobody_looked_at_stands_where_its_files_say() -> None:
    second = replace(part(whole(), 1, 2), looks=(), stalls=())
    dead = tuple(replace(f, alive=False) if f.world else f for f in second.flights)
    case = merging.merged([saved("a", part(whole(), 0)), saved("b", replace(second, flights=dead))])
    assert all(flight.alive for flight in case.flights if flight.world)
    assert {stall.pid for stall in case.stalls} >= {f.pid for f in case.flights if f.world}


def elsewhere(case: Case, port: int = 0, later: float = 0.0) -> Case:
    """The same as if its ranks had met at another port, or at another time."""
    joined = tuple(replace(j, address=f"127.0.0.1:{port}") if port else j for j in case.worlds_joined)
    return replace(case, worlds_joined=joined, clock_offset=case.clock_offset + later)


@pytest.mark.parametrize("other", [{"port": 1}, {"later": 7200.0}])
def test_other_runs_of_the_same_size_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="different runs"):
        merging.merged([saved("a", part(whole(), 0)), saved("b", elsewhere(part(whole(), 1, 2), **other))])


def test_a_rank_whose_file_is_lost_is_listed() -> None:
    rest = Case(outcome="died", flights=tuple(replace(f, alive=False) for f in part(whole(), 0).flights))
    page = terminal.render(rest, diagnose(rest), Screen(), live=False)
    assert "ranks 1–2 cannot be seen from here" in page
