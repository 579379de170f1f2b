"""A limit of time that never comes: the loop sets back the clock's beginning, or the deadline, again and again."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from unstuck.recorder.records.loops import Assignment, Condition, Side
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.tested_values import decisive, earlier_pieces, leaves, number_of, towards
from unstuck.rules.loop.training_loops import Loop
from unstuck.rules.words import seconds

MIN_READINGS = 4  # at each of which time was left,
MIN_TIMES = 2.0  # and from the first to the last of which passed so many times what was ever left
MOST_NAMES = 16  # that a time is computed from


def why_set_back(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """Why a time never comes, though the clock goes on: whatever else happens, the loop puts it off. A way out may be
    about the time of a single round: there a beginning that each round sets is meant."""
    in_test = condition is loop.described.test
    for leaf, way in decisive(condition, wanted):
        sides = towards(loop, leaf, way)
        if not sides or any(each.value is not (not way) for each in (*earlier_pieces(loop, leaf), leaf)):
            continue
        left = _seconds_left(sides)
        if len(left) < MIN_READINGS or loop.seconds_since < MIN_TIMES * max(left):
            continue
        found = (each for each in _putting_off(loop, leaf, sides[-1]) if each.guards or in_test)
        statement = next(found, None)
        if statement is not None:
            passed = seconds(loop.seconds_since)
            return Reason(
                f"`{leaf.text}` stays {str(leaf.value).lower()}: line {statement.line} begins the time anew",
                f": `{statement.text}` runs again and again in the loop. At each of {len(left)} readings at most "
                f"{seconds(max(left))} were left, and {passed} have passed from the first to the last",
                observed=True,
                site=(loop.frame.file, statement.line, loop.frame.function),
                fix=f"Set at line {statement.line} another name than the one by which the loop ends.",
            )
    return None


def _seconds_left(sides: list[tuple[Side, Side]]) -> list[float]:
    """At each reading; empty where one is not known."""
    numbers = [(number_of(rising), number_of(bound)) for rising, bound in sides]
    left = [bound - rising for rising, bound in numbers if rising is not None and bound is not None]
    return left if len(left) == len(sides) and min(left) > 0 else []


def _putting_off(loop: Loop, leaf: Condition, sides: tuple[Side, Side]) -> Iterator[Assignment]:
    """Statements that set what the time is counted from, or what it is to reach; none where anything but clocks,
    numbers and regular rounds decides on any of the names that are compared."""
    known: dict[str, list[Assignment]] = {}
    waiting = list(leaf.names)
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        given = known[name] = loop.assigned(name)
        settled = loop.accounts_for(name) if given else loop.never_changes(name)
        if not settled or len(known) > MOST_NAMES or not all(_is_regular(loop, each, known.keys()) for each in given):
            return
        waiting += [other for each in given for other in each.reads]
    clock = leaf.compared is not None and leaf.compared.clock
    if not clock and not any(each.clock for given in known.values() for each in given):
        return
    compared = leaf.compared.difference[1:] if leaf.compared is not None else []
    minus = [name for given in known.values() for each in given for name in each.minus]
    for name in (sides[1].text, *(side.text for side in compared), *minus):
        yield from known.get(name, ())


def _is_regular(loop: Loop, statement: Assignment, known: Collection[str]) -> bool:
    """It gives a time or a number, in every round, in each one of so many, or as time passes. Of a method it is not
    known how often it is called. `known`: names of times, whose statements are all asked."""
    pieces = [piece for guard in statement.guards for piece, _ in leaves(guard, guard.wanted)]
    regular = all(piece.every is not None or _is_of_clocks(loop, piece, known) for piece in pieces)
    return statement.sum and not statement.elsewhere and regular


def _is_of_clocks(loop: Loop, piece: Condition, known: Collection[str]) -> bool:
    """It compares times, and what each round computes of these."""
    others = [name for name in piece.names if name not in known]
    given = [each for name in others for each in loop.assigned(name)]
    fixed = all(loop.accounts_for(name) or loop.never_changes(name) for name in others)
    return piece.compared is not None and fixed and all(each.sum and not each.guards for each in given)
