"""What a flight file says of a rank: its world, its groups, and the collectives it called last. Not injected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from unstuck.model import Collective, Frame, LastPass, RankGroup
from unstuck.observer.collective_dumps import dumped
from unstuck.observer.gauge import NANO, Gauge
from unstuck.observer.journals import read_records
from unstuck.observer.source import Source
from unstuck.recorder import layout as at
from unstuck.recorder.records import Site
from unstuck.recorder.records.ranks import CollectiveGroup, CollectiveSite, WorldJoined

_source = Source()
KEPT = 16  # of the last collectives: two ranks that should be at the same one are never further apart


def joint_calls(gauge: Gauge, w: list[int]) -> dict[str, Any]:
    """Fields of a Flight, none where the process was never a rank."""
    if not w[at.W_FORMING]:
        return {}
    records = read_records(gauge)
    groups = {
        record.number: RankGroup(record.name, record.size, tuple(record.ranks))
        for record in records
        if isinstance(record, CollectiveGroup)
    }
    sites = {record.number: record.site for record in records if isinstance(record, CollectiveSite)}
    rows = [_row(w, serial) for serial in range(max(1, w[at.W_COLLECTIVES] - KEPT + 1), w[at.W_COLLECTIVES] + 1)]
    calls = [_collective(row, groups, sites) for row in rows if row is not None]
    return {
        "world": w[at.W_WORLD] or None,
        "forming": w[at.W_FORMING] / NANO,
        "formed": w[at.W_FORMED] / NANO if w[at.W_FORMED] > 0 else None,
        "disbanded": w[at.W_DISBANDED] / NANO if w[at.W_DISBANDED] else None,
        "groups": tuple(groups.values()),
        "collectives": (*calls[:-1], *map(_annotated, calls[-1:])),
        "collective_count": w[at.W_COLLECTIVES],
        "in_collectives": w[at.W_TOGETHER] / NANO,
        "passes": tuple(_passes(w)),
        "dumped": next((dumped(r) for r in reversed(records) if isinstance(r, WorldJoined)), ()),
    }


def _passes(w: list[int]) -> Iterator[LastPass]:
    for place in range(at.PASSES_AT, at.PASSES_END, at.PASS_WORDS):
        loader, number, batches, steps = w[place : place + at.PASS_WORDS]
        if loader:
            ended = batches != at.NONE
            yield LastPass(loader - 1, number, batches if ended else None, steps if ended else 0)


def _annotated(call: Collective) -> Collective:
    """With what the source says about its line: of a dead rank no stack will."""
    if not call.file:
        return call
    (frame,) = _source.annotate((Frame(call.file, call.line, call.function),))
    return replace(call, arms=frame.arms, guards=frame.guards, leaves=frame.leaves)


def _row(w: list[int], serial: int) -> list[int] | None:
    place = at.COLLECTIVES_AT + (serial - 1) % at.COLLECTIVES_KEPT * at.COLLECTIVE_WORDS
    row = w[place : place + at.COLLECTIVE_WORDS]
    return row if row[at.C_SERIAL] == serial else None


def _collective(row: list[int], groups: dict[int, RankGroup], sites: dict[int, Site]) -> Collective:
    kind, group = row[at.C_KIND], groups.get(row[at.C_GROUP])
    file, line, function = sites.get(row[at.C_SITE], ("", 0, ""))
    left, described = row[at.C_LEFT], row[at.C_TYPE]
    dimensions = described >> 6
    halves = (row[at.C_SIZES], row[at.C_MORE_SIZES])
    sizes = [size for both in halves for size in (both >> 32, both & 0xFFFFFFFF)]
    return Collective(
        kind=_name(at.COLLECTIVES, kind & 0xFF),
        group=group.name if group is not None else "",
        number=row[at.C_NUMBER],
        entered=row[at.C_ENTERED] / NANO,
        left=abs(left) / NANO if left else None,
        raised=left < 0,
        asynchronous=bool(kind & at.ASYNC),
        pending=bool(kind & at.PENDING),
        peer=row[at.C_PEER] if row[at.C_PEER] >= 0 else None,
        dtype=_name(at.DTYPES, described & 63),
        shape=tuple(sizes[: min(dimensions, 4)]),
        dimensions=dimensions if described else None,
        file=file,
        line=line,
        function=function,
        step=row[at.C_STEP],
    )


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else ""
