"""Pieces of a loop's conditions, and the values that they had at each description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unstuck.recorder.records.loops import Comparison, Condition, Side
from unstuck.rules.loop.training_loops import Loop


def leaves(condition: Condition, wanted: bool = True) -> Iterator[tuple[Condition, bool]]:
    """Comparisons and plain values of a condition, each with the value that would help to make it `wanted`."""
    if condition.kind in ("and", "or"):
        for part in condition.parts:
            yield from leaves(part, wanted)
    elif condition.kind in ("not", "call"):
        yield from leaves(condition.parts[0], wanted if condition.kind == "call" else not wanted)
    else:
        yield condition, wanted


def decisive(condition: Condition, wanted: bool) -> Iterator[tuple[Condition, bool]]:
    """Pieces each of which alone can keep the condition from becoming `wanted`, with the value it would need."""
    if condition.kind == "not":
        yield from decisive(condition.parts[0], not wanted)
    elif condition.kind in ("call", "and" if wanted else "or"):
        for part in condition.parts:
            yield from decisive(part, wanted)
    elif not condition.parts:
        yield condition, wanted


def comparisons(condition: Condition, wanted: bool = True) -> Iterator[tuple[Condition, Comparison, bool]]:
    """Those of the leaves that compare two sides."""
    return ((leaf, leaf.compared, way) for leaf, way in leaves(condition, wanted) if leaf.compared is not None)


def earlier_pieces(loop: Loop, leaf: Condition) -> list[Condition]:
    """The same piece of condition in the earlier descriptions of the loop."""
    pieces = [[piece for whole in _conditions(before) for piece, _ in leaves(whole)] for before in loop.earlier]
    same = [next((piece for piece in each if piece.text == leaf.text), None) for each in pieces]
    return [piece for piece in same if piece is not None]


def _conditions(loop: Loop) -> Iterator[Condition]:
    if loop.is_while:
        yield loop.described.test
    guards = [guard for way in loop.exits for guard in way.guards]
    guards += [guard for given in loop.described.assigned.values() for each in given for guard in each.guards]
    yield from (guard for guard in guards if guard.kind != "other")


def history(loop: Loop, leaf: Condition) -> list[Comparison]:
    """The comparison at each description, oldest first, the present one last."""
    return [each.compared for each in (*earlier_pieces(loop, leaf), leaf) if each.compared is not None]


def both_ways(loop: Loop, leaf: Condition) -> list[list[tuple[Side, Side]]]:
    """The two sides at each description, once with the left one first and once with the right one."""
    return [[each.sides(flipped) for each in history(loop, leaf)] for flipped in (False, True)]


def towards(loop: Loop, leaf: Condition, wanted: bool) -> list[tuple[Side, Side]]:
    """Of an order that should come out as wanted: what has to rise, and the bound it has to reach, at each description.
    Empty where no order is asked for."""
    op = leaf.compared.op[0] if leaf.compared is not None else ""
    return both_ways(loop, leaf)[(op == ">") != wanted] if op and op in "<>" else []


def counters(loop: Loop, condition: Condition, wanted: bool) -> Iterator[list[tuple[Side, Side]]]:
    """What has to rise to a bound so that the condition comes out as wanted: it and its bound, at each description."""
    return filter(None, (towards(loop, leaf, way) for leaf, way in decisive(condition, wanted)))


def parted(leaf: Condition) -> list[Side]:
    """The two things that a comparison is about: its sides, or in `a - b < c` what is on its left."""
    compared = leaf.compared
    return [] if compared is None else compared.difference or list(compared.sides())


def numbers_of(compared: Comparison) -> tuple[float | None, float | None]:
    return number_of(compared.left), number_of(compared.right)


def number_of(side: Side) -> float | None:
    value = side.value.number
    return None if value is None or value != value else float(value)


def value_texts(leaf: Condition) -> list[tuple[str, str]]:
    sides = [side.value for side in leaf.compared.sides()] if leaf.compared is not None else []
    return [(value.kind, value.text) for value in (*sides, leaf.tested) if value is not None]


def shown(side: Side) -> str:
    """step = 5120; a bare constant is its own text."""
    value = side.value.text or "?"
    return value if side.text == value else f"{side.text} = {value}"


def all_values(tested: Iterable[Condition]) -> str:
    return ", ".join(dict.fromkeys(map(values_of, tested)))


def values_of(leaf: Condition) -> str:
    if leaf.compared is not None:
        sides = [side for side in leaf.compared.sides() if side.text != side.value.text]
        return " and ".join(f"`{shown(side)}`" for side in sides)
    return f"`{leaf.text} = {leaf.tested.text if leaf.tested is not None else '?'}`"
