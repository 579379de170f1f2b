"""Which calls of ranks belong together: who must join one, which of them fit, and the first that did not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from unstuck.model import Collective
from unstuck.rules.rank_positions import Position, World

COUNTERPART = {"send": "recv", "recv": "send"}
ALIKE = ("all_reduce", "broadcast", "reduce", "reduce_scatter", "all_gather")  # all give a tensor of the same shape
NOT_NUMBERED = (*COUNTERPART, "new_group")  # among the collectives of their group
FROM_ONE = ("broadcast", "reduce", "gather", "scatter")


def members(world: World, position: Position) -> list[Position]:
    """Ranks that the call needs, as far as they can be seen."""
    call = position.call
    assert call is not None
    if call.kind in COUNTERPART:
        ranks = [call.peer] if call.peer is not None else []
    else:
        group = next((group for group in position.flight.groups if group.name == call.group), None)
        ranks = list(group.ranks) if group is not None and group.size < world.size else list(world.positions)
    return [world.positions[rank] for rank in ranks if rank in world.positions]


def absent(world: World, position: Position) -> list[Position]:
    """Those of them that are not in it."""
    return [other for other in members(world, position) if not joined(other, position)]


def joined(one: Position, other: Position) -> bool:
    """The first is in the call that the other is in."""
    if one.call is None or other.call is None or one.alive != other.alive:
        return False
    if other.call.kind == "new_group":
        return any(call.kind == "new_group" and call.number >= other.call.number for call in one.flight.collectives)
    if other.call.kind in COUNTERPART:
        return one.call.kind == COUNTERPART[other.call.kind] and one.call.peer == other.rank
    return _fit(one.call, other.call)


def _fit(a: Collective, b: Collective) -> bool:
    return (a.group, a.number, a.kind) == (b.group, b.number, b.kind) and _arguments_fit(a, b)


def _arguments_fit(a: Collective, b: Collective) -> bool:
    """As far as they were recorded."""
    unknown = a.dimensions is None or b.dimensions is None
    return arguments(a) == arguments(b) or (unknown and arguments(a)[-1] == arguments(b)[-1])


def arguments(call: Collective) -> tuple[object, ...]:
    """What must be the same on all ranks, beyond the function."""
    source = call.peer if call.kind in FROM_ONE else None
    return (call.dtype, call.shape, call.dimensions, source) if call.kind in ALIKE else (source,)


def called_before(one: Position, other: Position) -> bool:
    """The first has called, earlier, what the other is in now: both come by that line."""
    call = other.call
    assert call is not None
    sites = {(past.file, past.line, past.kind) for past in one.flight.collectives[:-1]}
    return (call.file, call.line, call.kind) in sites and bool(call.file)


def first_misfit(world: World) -> tuple[list[Position], Position] | None:
    """Ranks that made one call, and one that made another as its call of the same number; as they were in these.

    Where both take the same bytes neither notices, and they wait for each other only later.
    """
    for calls in sorted(_by_number(world), key=lambda calls: min(call.entered for _, call in calls)):
        usual = Counter((call.kind, call.file, call.line) for _, call in calls).most_common(1)[0][0]
        first = next(call for _, call in calls if (call.kind, call.file, call.line) == usual)
        odd = next((p for p, call in calls if not _fit(call, first) and _matters(world, call, first)), None)
        if odd is not None:
            made = [replace(p, call=call, process=None) for p, call in calls]
            return [p for p in made if p.call and _fit(p.call, first)], next(p for p in made if p.rank == odd.rank)
    return None


def _by_number(world: World) -> Iterator[list[tuple[Position, Collective]]]:
    numbered: dict[tuple[str, int], list[tuple[Position, Collective]]] = {}
    for position in world.positions.values():
        for call in position.flight.collectives:
            begun = not call.pending or call is position.call
            if begun and call.number and call.kind not in NOT_NUMBERED:
                numbered.setdefault((call.group, call.number), []).append((position, call))
    return (calls for calls in numbered.values() if len(calls) > 1)


def _matters(world: World, a: Collective, b: Collective) -> bool:
    """Another function always does; other shapes only if nothing of that group was finished after them."""
    if a.kind != b.kind:
        return True
    later = (c for p in world.positions.values() for c in p.flight.collectives if c.group == a.group)
    return not any(c.number > a.number and c.left and not (c.raised or c.asynchronous) for c in later)
