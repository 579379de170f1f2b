"""Whether a loop can still end: its test, and each way out of it, by the values at several moments."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from unstuck.recorder.records.loops import Assignment, Comparison, Condition, Side, WayOut
from unstuck.rules.loop.kept_low import why_kept_low
from unstuck.rules.loop.no_longer import why_no_longer
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.set_back import why_set_back
from unstuck.rules.loop.stays import why_it_stays
from unstuck.rules.loop.tested_values import (
    all_values,
    both_ways,
    comparisons,
    decisive,
    earlier_pieces,
    history,
    leaves,
    number_of,
    numbers_of,
    shown,
    value_texts,
    values_of,
)
from unstuck.rules.loop.training_loops import Loop
from unstuck.rules.loop.unreached import MIN_MOMENTS, beyond_limits, why_not_run

MIN_STEPS = 20  # between two descriptions, after which a value that did not change counts as constant
MIN_STEPS_SHARED = 100  # the same for an attribute or a global name, which other files could change too
MIN_PASSES = 3  # over a loader, which do as well as these steps
FAR_PAST_RATIO = 1.5  # so many times the bound is past it for good, not in the last iteration
UNMOVED_SHARE = 0.8  # of the distance at first that is left: it comes no nearer
MIN_SECONDS_LEFT, MIN_TIMES_LEFT = 3600.0, 100.0  # of a `for` over a range, and in times of what is done: no real bound
MIN_SHARE = 0.5  # of a measure that is compared with percents: less may be a percentage that begins low
SETTLED_MOMENTS = 6  # the last ones, at which a value that is waited for should have come nearer
MIN_STEPS_SETTLED = 200  # between the first and the last of these
SETTLED_SHARE = 2e-6  # of a value is rounding: float32 has seven digits
FAR_SHARE = 0.9  # of the value, or less, is a bound that it has not just about reached
ROUNDING = 1e-5  # a change or an error of less than this may be rounding alone
_MEASURES = re.compile(
    r"(^|[_.])(val|valid|test|train|top\d|best|mean|avg|m)?_?(acc|accuracy|f1|precision|recall|auc|auroc|iou|dice)(?![a-z])"
)


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
        or _or_holds(loop, test)
        or _kept_true(loop, test)
        or _beyond_limits(loop, test, wanted=False)
        or _jumped(loop, test, wanted=False)
        or _share_for_percent(loop, test, wanted=False)
        or _constant(loop, test)
        or _stays(loop, test, wanted=False)
        or _reset(loop, test)
        or why_set_back(loop, test, wanted=False)
        or _cannot_rise(loop, test)
        or _settled(loop, test, wanted=False)
        or _never_set(loop, test, wanted=False)
        or why_no_longer(loop, test, wanted=False)
        or _kept_low(loop, test, wanted=False)
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
        reason = (
            _beyond_limits(loop, guard, guard.wanted)
            or _jumped(loop, guard, guard.wanted)
            or _share_for_percent(loop, guard, guard.wanted)
            or _constant(loop, guard)
            or _stays(loop, guard, guard.wanted)
            or _reset(loop, guard)
            or why_set_back(loop, guard, guard.wanted)
            or _restarts_inside(loop, guard)
            or _cannot_rise(loop, guard)
            or _settled(loop, guard, guard.wanted)
            or (_never_set(loop, guard, guard.wanted) if deep else None)
            or why_no_longer(loop, guard, guard.wanted)
            or _kept_low(loop, guard, guard.wanted)
        )
        if reason:
            return reason
    return None


# --- the reasons ---------------------------------------------------------------------------------------------


def _or_holds(loop: Loop, test: Condition) -> Reason | None:
    """`A or B`: the bound in B is passed, and A is true whatever happens."""
    holding = [part for part in test.parts if part.value is True]
    if (
        test.kind != "or"
        or not holding
        or any(compared.clock for part in holding for _, compared, _ in comparisons(part))
    ):
        return None
    over = [part for part in test.parts if part.value is False]
    passed = [compared for part in over for leaf, compared, _ in comparisons(part) if _has_moved(loop, leaf, compared)]
    if not passed:
        return None
    bound, kept = passed[-1], holding[0]
    past = f"`{shown(bound.left)}` is past `{shown(bound.right)}`"
    goes_on = f", and the loop goes on because `{kept.text}` is true"
    if all(_constant(loop, part) for part in holding):
        return Reason(past, f"{goes_on} ({all_values(leaf for leaf, _ in leaves(kept))}) and stays true")
    if _far_past(bound) and all(_comes_no_nearer(loop, part) for part in holding):
        return Reason(past, f"{goes_on}: {values_of(kept)}, and it comes no nearer")
    return None


def _kept_true(loop: Loop, test: Condition) -> Reason | None:
    """What the body assigns keeps the test true: a counter that is wrapped, set back or clamped below the bound."""
    names = [name for leaf, _ in leaves(test) for name in leaf.names]
    given = [assignment for name in names for assignment in loop.assigned(name)]
    if not loop.described.stays_true or any(assignment.elsewhere for assignment in given):
        return None
    by = f": `{given[-1].text}` (line {given[-1].line}) keeps it so" if given else ": nothing in the loop changes it"
    return Reason(f"`{test.text}` stays true", by)


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


def _jumped(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """An equality that has been jumped over: the side that moves is past it and moves one way only."""
    for leaf, way in decisive(condition, wanted):
        if leaf.compared is None or leaf.compared.op != ("==" if way else "!="):
            continue
        for sides in both_ways(loop, leaf):
            moving, bound = sides[-1]
            steadily = all(assignment.kind in ("add", "scale") for assignment in loop.assigned(moving.text))
            direction = _moved_past(sides) if steadily else None
            if direction:
                return Reason(
                    f"`{shown(moving)}` has jumped over `{shown(bound)}`",
                    f": it only {direction}, so the two are never equal again",
                    observed=True,
                )
    return None


def _share_for_percent(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """An accuracy that is a share of 1 is waited for until it reaches a number of percents."""
    for leaf, way in decisive(condition, wanted):
        if leaf.compared is None or leaf.compared.op[0] not in "<>":
            continue
        for sides, above in zip(both_ways(loop, leaf), (">", "<"), strict=True):
            share, bound = sides[-1]
            known = [value for side, _ in sides if (value := number_of(side)) is not None]
            limit, awaited = number_of(bound), (leaf.compared.op[0] == above) == way
            if not _MEASURES.search(share.text.lower()) or limit is None or not 1 < limit <= 100:
                continue
            if awaited and len(known) > MIN_MOMENTS and max(known) <= 1 and min(known[-MIN_MOMENTS:]) >= MIN_SHARE:
                return Reason(
                    f"`{shown(share)}` never reaches `{shown(bound)}`",
                    f": it is a share between 0 and 1 ({', '.join(f'{value:.3g}' for value in known[-4:])}), the bound "
                    "a number of percent",
                    observed=True,
                )
    return None


def _constant(loop: Loop, condition: Condition) -> Reason | None:
    """Nothing in it changes: the loop assigns none of its names, and none has changed since."""
    tested = [leaf for leaf, _ in leaves(condition)]
    names = [name for leaf in tested for name in leaf.names]
    if not names or any(_may_change(loop, leaf) for leaf in tested) or not all(map(loop.never_changes, names)):
        return None
    own = all(map(loop.owns, names))
    if not own and loop.steps_since < MIN_STEPS_SHARED and loop.passes_since < MIN_PASSES:
        return None
    how = "the loop assigns none of it" if own else f"unchanged in {loop.steps_since:,} steps"
    return Reason(f"nothing changes `{condition.text}`", f" ({all_values(tested)}): {how}")


def _stays(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """Whatever the loop does leaves a value as it is, or as infinite as it is."""
    why = why_it_stays(loop, condition, wanted)
    return None if why is None else Reason(why.short, why.more, observed=True, fix=why.fix)


def _reset(loop: Loop, condition: Condition) -> Reason | None:
    """The loop resets the tested counter, whatever happens, before it can reach its bound."""
    for leaf, _, _ in comparisons(condition):
        for sides in both_ways(loop, leaf):
            counter, bound = sides[-1]
            statements = loop.assigned(counter.text)
            seen = [number_of(side) or 0.0 for side, _ in sides]
            resets = [each for each in statements if not each.guards and _sets_back(each, seen)]
            counts = any(each.kind == "add" for each in statements)
            by_loop = any(each.kind != "constant" for each in resets) and max(seen) < (number_of(bound) or 0.0)
            if resets and counts and (by_loop or _stays_below(loop, seen, counter, bound)):
                return Reason(
                    f"`{counter.text}` is reset in every iteration, so it never reaches `{shown(bound)}`",
                    f": line {resets[0].line} is `{resets[0].text}`; it is {number_of(counter):g} after {loop.step:,} "
                    "training steps",
                    observed=True,
                )
    return None


def _sets_back(statement: Assignment, seen: list[float]) -> bool:
    """To a constant; or to what an inner `for` over the same name leaves there, which was always the same."""
    over_it = statement.text.startswith("for ") and len(seen) > MIN_MOMENTS and len(set(seen)) == 1
    return statement.kind == "constant" or over_it


def _restarts_inside(loop: Loop, condition: Condition) -> Reason | None:
    """The bound is compared with a counter that restarts in an inner loop, and is more than that one ever counts."""
    inner = [each.counts for each in loop.frame.loops if each.first > loop.line and each.counts is not None]
    for _, compared, _ in comparisons(condition):
        bound = number_of(compared.right)
        if compared.op not in (">", ">=", "==") or bound is None:
            continue
        for counter in inner:
            if compared.left.text == counter.name and bound > counter.most:
                return Reason(
                    f"`{counter.name}` never reaches `{shown(compared.right)}`",
                    f": it restarts with every pass and counts to {counter.most:,} at most",
                )
    return None


def _cannot_rise(loop: Loop, condition: Condition) -> Reason | None:
    """A counter whose every increment waits for something that cannot happen."""
    for leaf, compared, _ in comparisons(condition):
        name = compared.left.text
        counted = {number_of(each.left) for each in history(loop, leaf)[-MIN_MOMENTS - 1 :]}
        increments = [each for each in loop.assigned(name) if each.kind != "constant"]
        if not loop.accounts_for(name) or not increments or len(counted) > 1 or None in counted:
            continue
        blocks = [why_not_run(loop, each) for each in increments]
        if all(blocks):
            return Reason(
                f"`{shown(compared.left)}` never rises to `{shown(compared.right)}`",
                f": line {increments[0].line} would raise it, but {blocks[0]}",
                observed=True,
            )
    return None


def _settled(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """A loss or an error that is waited for until it falls to a bound, and that has stopped falling far above it."""
    if not loop.is_innermost or len(loop.earlier) < SETTLED_MOMENTS - 1:
        return None
    if loop.step - loop.earlier[1 - SETTLED_MOMENTS].step < MIN_STEPS_SETTLED:
        return None
    for leaf, way in decisive(condition, wanted):
        if leaf.compared is None or leaf.compared.op[0] not in "<>":
            continue
        for sides, below in zip(both_ways(loop, leaf), ("<", ">"), strict=True):
            value, bound = sides[-1]
            awaited = (leaf.compared.op[0] == below) == way
            how = _stays_above(sides) if awaited and _made_anew(loop, leaf, value) else ""
            if how:
                return Reason(f"`{shown(value)}` no longer falls towards `{shown(bound)}`", how, observed=True)
    return None


def _stays_above(sides: list[tuple[Side, Side]]) -> str:
    """How a number stays above a bound: at the same value, or as small as rounding leaves it; empty if it may fall."""
    recent = [side.value.number for side, _ in sides[-SETTLED_MOMENTS:]]
    known = [value for value in recent if isinstance(value, float) and value > 0]
    limit = number_of(sides[-1][1])
    if limit is None or len(known) < SETTLED_MOMENTS or limit > FAR_SHARE * min(known):
        return ""
    if max(known) - min(known) <= SETTLED_SHARE * min(known):
        return f": it was {known[-1]:.6g} at each of the last {len(known)} readings"
    if max(known) < ROUNDING and min(known[-3:]) >= min(known[:3]) / 2:
        return f": it stays between {min(known):.2g} and {max(known):.2g}, which is what 32-bit rounding leaves of zero"
    return ""


def _made_anew(loop: Loop, leaf: Condition, side: Side) -> bool:
    """Each iteration computes what stands on this side, whatever happens."""
    given = [each for name in leaf.names if side.text.startswith(name) for each in loop.assigned(name)]
    return any(each.kind == "other" and not (each.guards or each.elsewhere) for each in given)


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


def _kept_low(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """A counter that noise sets back before it comes near its bound."""
    why = why_kept_low(loop, condition, wanted)
    fix = (
        "Compare what scatters less (the mean of many batches, or all of a fixed validation set), or compare with the "
        "best so far, or allow for the noise in the tolerance; and bound the steps as well."
    )
    return None if why is None else Reason(*why, observed=True, by_chance=True, fix=fix)


# --- what they rest on ---------------------------------------------------------------------------------------


def _far_past(compared: Comparison) -> bool:
    left, right = numbers_of(compared)
    if not left or not right:
        return False
    return max(left / right, right / left) >= FAR_PAST_RATIO


def _comes_no_nearer(loop: Loop, leaf: Condition) -> bool:
    """A comparison whose two sides have stayed as far from each other as they were, over several descriptions."""
    sides = [numbers_of(each) for each in history(loop, leaf)[-MIN_MOMENTS - 1 :]]
    gaps = [abs(left - right) for left, right in sides if left is not None and right is not None]
    return len(gaps) > MIN_MOMENTS and gaps[-1] >= UNMOVED_SHARE * gaps[0] > 0


def _has_moved(loop: Loop, leaf: Condition, compared: Comparison) -> bool:
    """A comparison of order or equality whose sides have changed since."""
    first, now = numbers_of(history(loop, leaf)[0]), numbers_of(compared)
    return compared.op in ("<", "<=", "!=", ">", ">=") and None not in now and now != first


def _moved_past(history: list[tuple[Side, Side]]) -> Literal["grows", "falls"] | None:
    """The first side has only risen, or only fallen, and is past the second, which has stayed."""
    values = [number_of(moving) for moving, _ in history]
    limits = {number_of(bound) for _, bound in history}
    known = [value for value in values if value is not None]
    limit = limits.pop()
    if limits or limit is None or len(known) < max(2, len(values)):
        return None
    if known[0] < known[-1] > limit and known == sorted(known):
        return "grows"
    return "falls" if known[0] > known[-1] < limit and known == sorted(known, reverse=True) else None


def _may_change(loop: Loop, leaf: Condition) -> bool:
    """It has changed, is not known, or is a container, which changes without being assigned."""
    earlier = earlier_pieces(loop, leaf)
    if not earlier or any(value_texts(each) != value_texts(leaf) for each in earlier):
        return True
    sides = [side.value for side in leaf.compared.sides()] if leaf.compared is not None else [leaf.tested]
    container = any(value is not None and value.kind == "object" for value in sides)
    return leaf.value is None or leaf.calls or container


def _stays_below(loop: Loop, seen: list[float], counter: Side, bound: Side) -> bool:
    limit = number_of(bound)
    if limit is None or number_of(counter) is None or max(seen) >= limit:
        return False
    fell = any(later < sooner for sooner, later in pairwise(seen))
    often = loop.steps_since >= 2 * limit or loop.passes_since >= MIN_PASSES
    return (fell and often) or loop.passes_since > limit
