"""Thousands of ranks are mostly alike: rules about one process look at a few of each kind, and at what stands out."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from unstuck.model import Case, Look
from unstuck.rules.rank_positions import World, world_of

ALL_UP_TO = 32  # ranks: so many are all looked at
A_PLACE = 2  # ranks of each place that are kept
MAX_KEPT = 48
OF_ALL = ("flights", "looks", "stalls", "loaders", "deaths", "worlds_joined", "workers_started")
STAND_OUT = ("deaths", "samples_failed", "batches_failed", "left_by_exit", "thread_deaths", "reductions_unfinished")


def thinned(case: Case) -> Case:
    """The Case with some of its ranks; as it is where there are few."""
    world = world_of(case)
    if world is None or len(world.positions) <= ALL_UP_TO:
        return case
    owners = owners_of(case, world)
    ranks = _chosen(case, world, owners)
    gone = {pid for pid, rank in owners.items() if rank not in ranks}
    return replace(
        case,
        looks=tuple(_without(look, gone) for look in case.looks),
        **{field.name: _kept(getattr(case, field.name), gone) for field in fields(case) if field.name != "looks"},
    )


def whereabouts(case: Case) -> Case:
    """All that says where each of its ranks is, and everything else of some."""
    world = world_of(case)
    if world is None:
        return case
    owners = owners_of(case, world)
    ranks = _chosen(case, world, owners)
    gone = {pid for pid, rank in owners.items() if rank not in ranks}
    others = [field.name for field in fields(case) if field.name not in OF_ALL]
    return replace(case, **{name: _kept(getattr(case, name), gone) for name in others})


def owners_of(case: Case, world: World) -> dict[int, int]:
    """The rank that each process belongs to: workers to the one that started them."""
    owners = {position.flight.pid: rank for rank, position in world.positions.items()}
    for started in case.workers_started:
        if started.pid in owners:
            owners.update(dict.fromkeys(started.pids, owners[started.pid]))
    for look in case.looks[-1:]:
        for process in look.processes:  # parents come first
            if process.pid not in owners and process.ppid in owners:
                owners[process.pid] = owners[process.ppid]
    return owners


def _chosen(case: Case, world: World, owners: dict[int, int]) -> set[int]:
    told = [record for name in STAND_OUT for record in getattr(case, name)]
    told += [learning for learning in case.learnings if any(loss.nonfinite for loss in learning.losses)]
    told.sort(key=lambda record: record.at)  # the first of them is the cause
    first = dict.fromkeys(owners[record.pid] for record in told if record.pid in owners)
    for group in sorted(world.together(), key=len):  # a rank that is alone somewhere is worth more
        first.update(dict.fromkeys(position.rank for position in group[:A_PLACE]))
    return set(list(first)[:MAX_KEPT])


def _without(look: Look, gone: set[int]) -> Look:
    return replace(look, processes=tuple(process for process in look.processes if process.pid not in gone))


def _kept(value: Any, gone: set[int]) -> Any:
    if not isinstance(value, tuple):
        return value
    return tuple(item for item in value if getattr(item, "pid", None) not in gone)
