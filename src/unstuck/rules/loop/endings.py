"""Whether a loop can still end: its test, and each way out of it, by the values at several moments."""

from __future__ import annotations

from dataclasses import replace

from unstuck.recorder.records.loops import Condition, WayOut
from unstuck.rules.loop.kept_low import why_kept_low
from unstuck.rules.loop.no_longer import why_no_longer
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.set_back import why_set_back
from unstuck.rules.loop.stays import why_it_stays
from unstuck.rules.loop.tested_values import all_values, decisive, leaves, number_of
from unstuck.rules.loop.training_loops import Loop
from unstuck.rules.loop.unchanged import MIN_PASSES, constant, kept_true, or_holds
from unstuck.rules.loop.unmet_bounds import cannot_rise, jumped, reset, restarts_inside, settled, share_for_percent
from unstuck.rules.loop.unreached import beyond_limits

MIN_STEPS = 20  # between two descriptions, after which a value that did not change counts as constant
MIN_SECONDS_LEFT, MIN_TIMES_LEFT = 3600.0, 100.0  # of a `for` over a range, and in times of what is done: no real bound


def turned_enough(loop: Loop) -> bool:
    return loop.steps_since >= MIN_STEPS or loop.passes_since >= MIN_PASSES


def why_test_holds(loop: Loop) -> Reason | None:
    """Why the test of a `while` can never become false; None if it can, or if that is not known."""
    test = loop.described.test
    if not loop.is_while or loop.is_endless or test.value is not True:
        return None
    if not turned_enough(loop):
        return why_no_longer(loop, test, wanted=False)
    return (
        _undone(loop, test, wanted=False)
        or or_holds(loop, test)
        or kept_true(loop, test)
        or _why_never(loop, test, wanted=False)
    )


def why_never_taken(loop: Loop, way: WayOut) -> Reason | None:
    """Why this way out will never be taken; None if it may be."""
    if not turned_enough(loop) or way.met is True:
        return None
    undone = (_undone(loop, guard, guard.wanted, way.line) for guard in way.guards)
    return next((reason for reason in undone if reason), None) or _why_blocked(loop, way.guards)


def seconds_left(loop: Loop) -> float | None:
    """Of a `for` over a range so long that it is no bound: what is left of it at the present pace."""
    counter = loop.described.counts
    seen = [_target(each, counter.name) for each in (*loop.earlier, loop)] if counter is not None else []
    known = [value for value in seen if value is not None]
    if counter is None or len(known) < len(seen) or known[-1] <= known[0]:
        return None
    left = (counter.most - known[-1]) / (known[-1] - known[0]) * loop.seconds_since
    return left if left >= MIN_SECONDS_LEFT and counter.most >= MIN_TIMES_LEFT * known[-1] else None


def _target(loop: Loop, name: str) -> float | None:
    return next((number_of(side) for side in loop.described.targets if side.text == name), None)


def never_left(loop: Loop) -> bool:
    """No way out of it will ever be taken."""
    return all(why_never_taken(loop, way) for way in loop.exits)


def _why_blocked(loop: Loop, guards: list[Condition], deep: bool = True) -> Reason | None:
    """Why one of these conditions can never hold."""
    for guard in guards:
        value = guard.parts[0].value if guard.kind == "call" else guard.value
        if guard.kind == "other" or value is not (not guard.wanted):
            continue
        reason = _why_never(loop, guard, guard.wanted, deep)
        if reason:
            return reason
    return None


def _why_never(loop: Loop, condition: Condition, wanted: bool, deep: bool = True) -> Reason | None:
    """Why a condition can never come out as wanted."""
    return (
        _beyond_limits(loop, condition, wanted)
        or jumped(loop, condition, wanted)
        or share_for_percent(loop, condition, wanted)
        or constant(loop, condition)
        or why_it_stays(loop, condition, wanted)
        or reset(loop, condition)
        or why_set_back(loop, condition, wanted)
        or (restarts_inside(loop, condition) if condition is not loop.described.test else None)
        or cannot_rise(loop, condition)
        or settled(loop, condition, wanted)
        or (_never_set(loop, condition, wanted) if deep else None)
        or why_no_longer(loop, condition, wanted)
        or why_kept_low(loop, condition, wanted)
    )


def _beyond_limits(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """What is to come true asks of a number what it can never be."""
    whys = (beyond_limits(loop, leaf, way) for leaf, way in decisive(condition, wanted))
    why = next(filter(None, whys), "")
    return Reason(why) if why else None


def _undone(loop: Loop, condition: Condition, wanted: bool, way: int = 0) -> Reason | None:
    """A statement sets the flag that is waited for, and another one clears it before each test; or it is a copy's."""
    for leaf, asked in decisive(condition, wanted):
        for each in loop.described.undone:
            if (each.name, each.way, each.holds) != (leaf.text, way, not asked):
                continue
            met = [guard for guard in each.set.guards if guard.holds and guard.kind != "other"]
            now = f" (`{met[-1].text}` now: {all_values(leaf for leaf, _ in leaves(met[-1]))})" if met else ""
            sets = f"`{each.set.text}` (line {each.set.line}) sets it{now}"
            if each.by is None:
                return Reason(
                    f"line {each.set.line} sets a copy's flag, not `{leaf.text}`",
                    f": {sets}, and `{each.on}` is another object",
                    site=each.site,
                    fix=f"Hand on the object whose `{leaf.text}` the loop tests, not a copy, or read the flag back.",
                )
            return Reason(
                f"`{leaf.text}` is cleared at line {each.by.line} before each test",
                f": {sets}, and `{each.by.text}` (line {each.by.line}) runs after it in every round",
                site=each.site,
                fix=f"Leave `{leaf.text}` as it is at line {each.by.line}: clear it once, before the loop.",
            )
    return None


def _never_set(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """A flag: every statement that would set it waits for something that can never hold."""
    ways = list(leaves(condition, wanted))
    flags = [leaf for leaf, _ in ways]
    names = [name for leaf in flags for name in leaf.names]
    statements = [
        statement
        for leaf, way in ways
        for name in leaf.names
        for statement in loop.assigned(name)
        if not statement.text.endswith(f"= {not way}")  # as it is already
    ]
    if any(statement.kind == "append" for statement in statements):
        return None
    if not statements or not all(map(loop.accounts_for, names)) or any(leaf.kind != "truth" for leaf in flags):
        return None
    reasons = [_why_blocked(loop, statement.guards, deep=False) for statement in statements]
    if not all(reasons) or reasons[0] is None:
        return None
    flag = f", so `{names[0]}` is never set (line {statements[0].line})"
    return replace(reasons[0], more=reasons[0].more + flag, by_chance=any(each.by_chance for each in reasons if each))
