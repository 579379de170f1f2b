"""Cases of many ranks, made from a real one of few: every rank is a copy of one that was recorded."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from unstuck.model import Case, Flight, Look, Process, RankGroup

FIRST_PID = 100_000


def world_of_many(case: Case, size: int) -> Case:
    """The same run with `size` ranks: the last is the one that stands alone in it, the others are where most are."""
    templates = {flight.rank: flight for flight in case.flights if flight.rank is not None and flight.world}
    odd = odd_rank(case)
    usual = next(rank for rank in sorted(templates) if rank != odd)
    taken = {rank: templates[odd] if rank == size - 1 else templates[usual] for rank in range(size)}
    pids = {rank: FIRST_PID + rank for rank in taken}
    own = {flight.pid for flight in templates.values()}
    flights = [_as_rank(flight, rank, pids[rank], size) for rank, flight in taken.items()]
    copied: dict[str, Any] = {
        field.name: _copied(getattr(case, field.name), taken, pids, own)
        for field in fields(case)
        if isinstance(getattr(case, field.name), tuple) and field.name not in ("flights", "looks", "command", "stalls")
    }
    return replace(
        case,
        **copied,
        stalls=_copied(case.stalls, taken, pids, own),
        looks=tuple(_look(look, taken, pids, own) for look in case.looks[-2:]),
        flights=(*(flight for flight in case.flights if flight.pid not in own), *flights),
    )


def odd_rank(case: Case) -> int:
    """The rank that is where no other is."""
    from unstuck.rules.rank_positions import world_of

    world = world_of(case)
    assert world is not None
    return min(world.together(), key=lambda group: (len(group), -group[0].rank))[0].rank


def _as_rank(flight: Flight, rank: int, pid: int, size: int) -> Flight:
    groups = tuple(RankGroup(group.name, size, ((0, size - 1, 1),)) for group in flight.groups)
    return replace(flight, rank=rank, pid=pid, world=size, groups=groups)


def _copied(items: tuple[Any, ...], taken: dict[int, Flight], pids: dict[int, int], own: set[int]) -> tuple[Any, ...]:
    """Of each rank what its template said; of others what there was."""
    said: dict[int, list[Any]] = {}
    for item in items:
        said.setdefault(getattr(item, "pid", 0), []).append(item)
    kept = [item for item in items if getattr(item, "pid", 0) not in own]
    for rank, flight in taken.items():
        kept += [_with_rank(item, rank, pids[rank]) for item in said.get(flight.pid, ())]
    return tuple(kept)


def _with_rank(item: Any, rank: int, pid: int) -> Any:
    return replace(item, pid=pid, **({"rank": rank} if hasattr(item, "rank") else {}))


def _look(look: Look, taken: dict[int, Flight], pids: dict[int, int], own: set[int]) -> Look:
    by_pid: dict[int, Process] = {process.pid: process for process in look.processes}
    kept = [process for process in look.processes if process.pid not in own]
    ranks = [
        replace(by_pid[flight.pid], pid=pids[rank], rank=rank) for rank, flight in taken.items() if flight.pid in by_pid
    ]
    return replace(look, processes=(*kept, *ranks))
