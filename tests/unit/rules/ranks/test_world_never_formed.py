"""Ranks that wait for others to come: who is missing, and when that is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstuck.model import Case, Flight, Look, Process, Stall, Thread, Wait
from unstuck.recorder.records.ranks import WorldJoined
from unstuck.rules.diagnose import diagnose

SITE = ("/home/me/train.py", 12, "main")


def forming(*numbers: int, world: int = 3, address: str = "127.0.0.1:29500", parent: str = "child") -> Case:
    flights = tuple(
        Flight(100 + place, role="rank", rank=number, world=world, forming=5.0) for place, number in enumerate(numbers)
    )
    joined = tuple(
        WorldJoined(pid=flight.pid, rank=flight.rank, world=world, address=address, site=SITE) for flight in flights
    )
    waits = Wait("lock")
    processes = [
        Process(f.pid, ppid=1, role="rank", rank=f.rank, is_python=True, threads=(Thread(f.pid, wait=waits),))
        for f in flights
    ]
    launcher = Process(1, role="main", is_python=True, threads=(Thread(1, wait=Wait(parent)),))  # type: ignore[arg-type]
    look = Look(20.0, (launcher, *processes), stacks=True)
    stalls = tuple(Stall(flight.pid, "start", 5.0, 20.0) for flight in flights)
    return Case(now=25.0, root=1, flights=flights, worlds_joined=joined, looks=(look,), stalls=stalls)


def test_who_is_missing() -> None:
    (finding,) = diagnose(forming(0, 2)).findings
    assert finding.rule == "world-never-formed"
    assert "rank 1 did not come" in finding.title
    assert finding.where.line == 12


def test_the_same_rank_twice() -> None:
    (finding,) = diagnose(forming(0, 1, 1)).findings
    assert finding.title.startswith("Rank 1 came more than once")


def test_different_addresses() -> None:
    case = forming(0, 1, 2)
    joined = (*case.worlds_joined[:2], WorldJoined(pid=102, rank=2, world=3, address="127.0.0.1:29501", site=SITE))
    (finding,) = diagnose(replace(case, worlds_joined=joined)).findings
    assert "different addresses" in finding.title


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(forming(0, 2, parent="running"), id="whoever starts them is still at work"),
        pytest.param(forming(0, 2, address="10.0.0.4:29500"), id="the others may come from another machine"),
        pytest.param(forming(0, 1, 2), id="all are there"),
    ],
)
def test_silent_while_somebody_may_come(case: Case) -> None:
    assert diagnose(case).findings == ()


@pytest.mark.parametrize(
    ("still", "named"),
    [
        pytest.param((290.0, 280.0, 270.0), True, id="nothing moves in any of them"),
        pytest.param((290.0, 20.0, 270.0), False, id="one of them is at work, as in a slow import"),
    ],
)
def test_all_came_and_do_not_meet(still: tuple[float, ...], named: bool) -> None:
    case = forming(0, 1, 2)
    stalls = tuple(replace(s, standing=320.0, still=each) for s, each in zip(case.stalls, still, strict=True))
    found = diagnose(replace(case, stalls=stalls, now=330.0)).findings
    assert ("world-never-formed" in [finding.rule for finding in found]) is named
