"""Whether a loop can still end: its test, and each way out of it, by the values at several moments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isnan
from typing import Literal

from unstuck.recorder.records.loops import Assignment, Comparison, Condition, Side, WayOut
from unstuck.rules.loop.training_loops import Loop

MIN_STEPS = 20  # between two descriptions, after which a value that did not change counts as constant
MIN_STEPS_SHARED = 100  # the same for an attribute or a global name, which other files could change too
MIN_PASSES = 3  # over a loader, which do as well as these steps
FAR_PAST_RATIO = 1.5  # so many times the bound is past it for good, not in the last iteration
MIN_MOMENTS = 3  # before now, at which a value that is waited for should have moved
UNMOVED_SHARE = 0.8  # of the distance at first that is left: it comes no nearer
MIN_SECONDS_LEFT, MIN_TIMES_LEFT = 3600.0, 100.0  # of a `for` over a range, and in times of what is done: no real bound
MIN_SHARE = 0.5  # of a measure that is compared with percents: less may be a percentage that begins low
_MEASURES = re.compile(
    r"(^|[_.])(val|valid|test|train|top\d|best|mean|avg|m)?_?(acc|accuracy|f1|precision|recall|auc|auroc|iou|dice)(?![a-z])"
)


@dataclass(frozen=True)
class Reason:
    """Why something can never come true: in short, and what there is to add."""

    short: str
    more: str = ""
    observed: bool = False  # it rests on values that moved, not only on what does not change

    @property
    def text(self) -> str:
        return self.short + self.more


def turned_enough(loop: Loop) -> bool:
    return loop.steps_since >= MIN_STEPS or loop.passes_since >= MIN_PASSES


def why_test_holds(loop: Loop) -> Reason | None:
    """Why the test of a `while` can never become false; None if it can, or if that is not known."""
    test = loop.described.test
    if not loop.is_while or loop.is_endless or not turned_enough(loop) or test.value is not True:
        return None
    return (
        _or_holds(loop, test)
        or _jumped(loop, test, wanted=False)
        or _share_for_percent(loop, test, wanted=False)
        or _constant(loop, test)
        or _reset(loop, test)
        or _cannot_rise(loop, test)
        or _never_set(loop, test, wanted=False)
    )


def why_never_taken(loop: Loop, way: WayOut) -> Reason | None:
    """Why this way out will never be taken; None if it may be."""
    return None if not turned_enough(loop) or way.met is True else _why_blocked(loop, way.guards)


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
    return next((_number(side) for side in loop.described.targets if side.text == name), None)


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
            _jumped(loop, guard, guard.wanted)
            or _share_for_percent(loop, guard, guard.wanted)
            or _constant(loop, guard)
            or _reset(loop, guard)
            or _restarts_inside(loop, guard)
            or _cannot_rise(loop, guard)
            or (_never_set(loop, guard, guard.wanted) if deep else None)
        )
        if reason:
            return reason
    return None


# --- the reasons ---------------------------------------------------------------------------------------------


def _or_holds(loop: Loop, test: Condition) -> Reason | None:
    """`A or B`: the bound in B is passed, and A is true whatever happens."""
    holding = [part for part in test.parts if part.value is True]
    if test.kind != "or" or not holding:
        return None
    over = [part for part in test.parts if part.value is False]
    passed = [compared for part in over for leaf, compared, _ in _compared(part) if _has_moved(loop, leaf, compared)]
    if not passed:
        return None
    bound, kept = passed[-1], holding[0]
    past = f"`{_shown(bound.left)}` is past `{_shown(bound.right)}`"
    goes_on = f", and the loop goes on because `{kept.text}` is true"
    if all(_constant(loop, part) for part in holding):
        return Reason(past, f"{goes_on} ({_all_values(leaf for leaf, _ in _leaves(kept))}) and stays true")
    if _far_past(bound) and all(_comes_no_nearer(loop, part) for part in holding):
        return Reason(past, f"{goes_on}: {_values(kept)}, and it comes no nearer")
    return None


def _jumped(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """An equality that has been jumped over: the side that moves is past it and moves one way only."""
    for leaf, way in _decisive(condition, wanted):
        if leaf.compared is None or leaf.compared.op != ("==" if way else "!="):
            continue
        for sides in _both_ways(loop, leaf):
            moving, bound = sides[-1]
            steadily = all(assignment.kind in ("add", "scale") for assignment in loop.assigned(moving.text))
            direction = _moved_past(sides) if steadily else None
            if direction:
                return Reason(
                    f"`{_shown(moving)}` has jumped over `{_shown(bound)}`",
                    f": it only {direction}, so the two are never equal again",
                    observed=True,
                )
    return None


def _share_for_percent(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """An accuracy that is a share of 1 is waited for until it reaches a number of percents."""
    for leaf, way in _decisive(condition, wanted):
        if leaf.compared is None or leaf.compared.op[0] not in "<>":
            continue
        for sides, above in zip(_both_ways(loop, leaf), (">", "<"), strict=True):
            share, bound = sides[-1]
            known = [value for side, _ in sides if (value := _number(side)) is not None]
            limit, awaited = _number(bound), (leaf.compared.op[0] == above) == way
            if not _MEASURES.search(share.text.lower()) or limit is None or not 1 < limit <= 100:
                continue
            if awaited and len(known) > MIN_MOMENTS and max(known) <= 1 and min(known[-MIN_MOMENTS:]) >= MIN_SHARE:
                return Reason(
                    f"`{_shown(share)}` never reaches `{_shown(bound)}`",
                    f": it is a share between 0 and 1 ({', '.join(f'{value:.3g}' for value in known[-4:])}), the bound "
                    "a number of percent",
                    observed=True,
                )
    return None


def _constant(loop: Loop, condition: Condition) -> Reason | None:
    """Nothing in it changes: the loop assigns none of its names, and none has changed since."""
    tested = [leaf for leaf, _ in _leaves(condition)]
    names = [name for leaf in tested for name in leaf.names]
    if not names or any(_may_change(loop, leaf) for leaf in tested) or not all(map(loop.never_changes, names)):
        return None
    own = all(map(loop.owns, names))
    if not own and loop.steps_since < MIN_STEPS_SHARED and loop.passes_since < MIN_PASSES:
        return None
    how = "the loop assigns none of it" if own else f"unchanged in {loop.steps_since:,} steps"
    return Reason(f"nothing changes `{condition.text}`", f" ({_all_values(tested)}): {how}")


def _reset(loop: Loop, condition: Condition) -> Reason | None:
    """The loop resets the tested counter, whatever happens, before it can reach its bound."""
    for leaf, _, _ in _compared(condition):
        for sides in _both_ways(loop, leaf):
            counter, bound = sides[-1]
            statements = loop.assigned(counter.text)
            resets = [each for each in statements if each.kind == "constant" and not each.guards]
            counts = any(each.kind == "add" for each in statements)
            seen = [_number(side) or 0.0 for side, _ in sides]
            if resets and counts and _stays_below(loop, seen, counter, bound):
                return Reason(
                    f"`{counter.text}` is reset in every iteration, so it never reaches `{_shown(bound)}`",
                    f": line {resets[0].line} is `{resets[0].text}`; it is {_number(counter):g} after {loop.step:,} "
                    "training steps",
                    observed=True,
                )
    return None


def _restarts_inside(loop: Loop, condition: Condition) -> Reason | None:
    """The bound is compared with a counter that restarts in an inner loop, and is more than that one ever counts."""
    inner = [each.counts for each in loop.frame.loops if each.first > loop.line and each.counts is not None]
    for _, compared, _ in _compared(condition):
        bound = _number(compared.right)
        if compared.op not in (">", ">=", "==") or bound is None:
            continue
        for counter in inner:
            if compared.left.text == counter.name and bound > counter.most:
                return Reason(
                    f"`{counter.name}` never reaches `{_shown(compared.right)}`",
                    f": it restarts with every pass and counts to {counter.most:,} at most",
                )
    return None


def _cannot_rise(loop: Loop, condition: Condition) -> Reason | None:
    """A counter whose every increment waits for something that cannot happen."""
    for leaf, compared, _ in _compared(condition):
        name = compared.left.text
        counted = {_number(each.left) for each in _history(loop, leaf)[-MIN_MOMENTS - 1 :]}
        increments = [each for each in loop.assigned(name) if each.kind != "constant"]
        if not loop.accounts_for(name) or not increments or len(counted) > 1 or None in counted:
            continue
        blocks = [_why_not_run(loop, each) for each in increments]
        if all(blocks):
            return Reason(
                f"`{_shown(compared.left)}` never rises to `{_shown(compared.right)}`",
                f": line {increments[0].line} would raise it, but {blocks[0]}",
                observed=True,
            )
    return None


def _never_set(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """A flag: every statement that would set it waits for something that can never hold."""
    ways = list(_leaves(condition, wanted))
    flags = [leaf for leaf, _ in ways]
    names = [name for leaf in flags for name in leaf.names]
    statements = [
        statement
        for leaf, way in ways
        for name in leaf.names
        for statement in loop.assigned(name)
        if not statement.text.endswith(f"= {not way}")  # as it is already
    ]
    if not statements or not all(map(loop.accounts_for, names)) or any(leaf.kind != "truth" for leaf in flags):
        return None
    reasons = [_why_blocked(loop, statement.guards, deep=False) for statement in statements]
    if not all(reasons) or reasons[0] is None:
        return None
    flag = f", so `{names[0]}` is never set (line {statements[0].line})"
    return Reason(reasons[0].short, reasons[0].more + flag, reasons[0].observed)


# --- what they rest on ---------------------------------------------------------------------------------------


def _far_past(compared: Comparison) -> bool:
    left, right = _numbers(compared)
    if not left or not right:
        return False
    return max(left / right, right / left) >= FAR_PAST_RATIO


def _comes_no_nearer(loop: Loop, leaf: Condition) -> bool:
    """A comparison whose two sides have stayed as far from each other as they were, over several descriptions."""
    sides = [_numbers(each) for each in _history(loop, leaf)[-MIN_MOMENTS - 1 :]]
    gaps = [abs(left - right) for left, right in sides if left is not None and right is not None]
    return len(gaps) > MIN_MOMENTS and gaps[-1] >= UNMOVED_SHARE * gaps[0] > 0


def _has_moved(loop: Loop, leaf: Condition, compared: Comparison) -> bool:
    """A comparison of order or equality whose sides have changed since."""
    first, now = _numbers(_history(loop, leaf)[0]), _numbers(compared)
    return compared.op in ("<", "<=", "!=", ">", ">=") and None not in now and now != first


def _moved_past(history: list[tuple[Side, Side]]) -> Literal["grows", "falls"] | None:
    """The first side has only risen, or only fallen, and is past the second, which has stayed."""
    values = [_number(moving) for moving, _ in history]
    limits = {_number(bound) for _, bound in history}
    known = [value for value in values if value is not None]
    limit = limits.pop()
    if limits or limit is None or len(known) < max(2, len(values)):
        return None
    if known[0] < known[-1] > limit and known == sorted(known):
        return "grows"
    return "falls" if known[0] > known[-1] < limit and known == sorted(known, reverse=True) else None


def _may_change(loop: Loop, leaf: Condition) -> bool:
    """It has changed, is not known, or is a container, which changes without being assigned."""
    earlier = _earlier(loop, leaf)
    if not earlier or any(_value_texts(each) != _value_texts(leaf) for each in earlier):
        return True
    sides = [side.value for side in leaf.compared.sides()] if leaf.compared is not None else [leaf.tested]
    container = any(value is not None and value.kind == "object" for value in sides)
    return leaf.value is None or leaf.calls or container


def _stays_below(loop: Loop, seen: list[float], counter: Side, bound: Side) -> bool:
    limit = _number(bound)
    if limit is None or _number(counter) is None or max(seen) >= limit:
        return False
    fell = any(later < sooner for sooner, later in pairwise(seen))
    often = loop.steps_since >= 2 * limit or loop.passes_since >= MIN_PASSES
    return (fell and often) or loop.passes_since > limit


def _why_not_run(loop: Loop, statement: Assignment) -> str:
    """Why a statement is never reached: a comparison on the way to it always comes out the other way."""
    for guard in statement.guards:
        for leaf, wanted in _decisive(guard, guard.wanted):
            if leaf.compared is None:
                continue
            why = (
                _blocked_by_infinity(loop, leaf, leaf.compared, wanted)
                or _blocked_by_nan(loop, leaf, leaf.compared, wanted)
                or _blocked_by_slack(loop, leaf, leaf.compared, wanted)
            )
            if why:
                return why
    return ""


def _blocked_by_infinity(loop: Loop, leaf: Condition, compared: Comparison, wanted: bool) -> str:
    """It has infinity on one side, which nothing in the loop replaces."""
    for side, above in ((compared.left, (">", ">=")), (compared.right, ("<", "<="))):
        limit = _number(side)
        named = [name for name in leaf.names if name in side.text]
        if limit not in (inf, -inf) or any(map(loop.assigned, named)):
            continue
        always = (compared.op in above) == (limit == inf)
        if always != wanted:
            return f"`{leaf.text}` is always {str(always).lower()}: {_shown(side)} is never updated"
    return ""


def _blocked_by_nan(loop: Loop, leaf: Condition, compared: Comparison, wanted: bool) -> str:
    """It has had NaN on one side at the last descriptions: every order with NaN is false."""
    ordered = compared.op in ("<", "<=", ">", ">=", "==")
    for sides in _both_ways(loop, leaf) if wanted and ordered else ():
        values = [side.value.number for side, _ in sides[-MIN_MOMENTS - 1 :]]
        if len(values) > MIN_MOMENTS and all(value is not None and isnan(value) for value in values):
            return f"`{leaf.text}` is always false: {_shown(sides[-1][0])}"
    return ""


def _blocked_by_slack(loop: Loop, leaf: Condition, compared: Comparison, wanted: bool) -> str:
    """`value < best + delta` lets a worse value replace the best one: the best is seen to move the wrong way, and the
    comparison that would notice it comes out as an improvement each time."""
    if compared.op not in ("<", "<=", ">", ">="):
        return ""
    for sides, improves in zip(_both_ways(loop, leaf), (">", "<"), strict=True):
        best, smaller = sides[-1][0], (compared.op[0] == improves) != wanted
        replaced = [each for name in leaf.names if name in best.text for each in loop.assigned(name)]
        by_this = any(guard.text == leaf.text and guard.wanted != wanted for each in replaced for guard in each.guards)
        values = [_number(side) for side, _ in sides]
        known = [value for value in values if value is not None and abs(value) != inf]
        worse = [(old, new) for old, new in pairwise(known) if (new > old if smaller else new < old)]
        if by_this and worse and len(known) > MIN_MOMENTS:
            old, new = worse[-1]
            moved = "rose" if smaller else "fell"
            return f"`{leaf.text}` takes worse for better: `{best.text}` {moved} from {old:.6g} to {new:.6g}"
    return ""


# --- conditions and their values -----------------------------------------------------------------------------


def _leaves(condition: Condition, wanted: bool = True) -> Iterator[tuple[Condition, bool]]:
    """Comparisons and plain values of a condition, each with the value that would help to make it `wanted`."""
    if condition.kind in ("and", "or"):
        for part in condition.parts:
            yield from _leaves(part, wanted)
    elif condition.kind in ("not", "call"):
        yield from _leaves(condition.parts[0], wanted if condition.kind == "call" else not wanted)
    else:
        yield condition, wanted


def _decisive(condition: Condition, wanted: bool) -> Iterator[tuple[Condition, bool]]:
    """Pieces each of which alone can keep the condition from becoming `wanted`, with the value it would need."""
    if condition.kind == "not":
        yield from _decisive(condition.parts[0], not wanted)
    elif condition.kind in ("call", "and" if wanted else "or"):
        for part in condition.parts:
            yield from _decisive(part, wanted)
    elif not condition.parts:
        yield condition, wanted


def _compared(condition: Condition, wanted: bool = True) -> Iterator[tuple[Condition, Comparison, bool]]:
    """Those of the leaves that compare two sides."""
    return ((leaf, leaf.compared, way) for leaf, way in _leaves(condition, wanted) if leaf.compared is not None)


def _earlier(loop: Loop, leaf: Condition) -> list[Condition]:
    """The same piece of condition in the earlier descriptions of the loop."""
    pieces = [[piece for whole in _conditions(before) for piece, _ in _leaves(whole)] for before in loop.earlier]
    same = [next((piece for piece in each if piece.text == leaf.text), None) for each in pieces]
    return [piece for piece in same if piece is not None]


def _conditions(loop: Loop) -> Iterator[Condition]:
    if loop.is_while:
        yield loop.described.test
    guards = [guard for way in loop.exits for guard in way.guards]
    guards += [guard for given in loop.described.assigned.values() for each in given for guard in each.guards]
    yield from (guard for guard in guards if guard.kind != "other")


def _history(loop: Loop, leaf: Condition) -> list[Comparison]:
    """The comparison at each description, oldest first, the present one last."""
    return [each.compared for each in (*_earlier(loop, leaf), leaf) if each.compared is not None]


def _both_ways(loop: Loop, leaf: Condition) -> list[list[tuple[Side, Side]]]:
    """The two sides at each description, once with the left one first and once with the right one."""
    return [[each.sides(flipped) for each in _history(loop, leaf)] for flipped in (False, True)]


def _numbers(compared: Comparison) -> tuple[float | None, float | None]:
    return _number(compared.left), _number(compared.right)


def _number(side: Side) -> float | None:
    value = side.value.number
    return None if value is None or value != value else float(value)


def _value_texts(leaf: Condition) -> list[tuple[str, str]]:
    sides = [side.value for side in leaf.compared.sides()] if leaf.compared is not None else []
    return [(value.kind, value.text) for value in (*sides, leaf.tested) if value is not None]


def _shown(side: Side) -> str:
    """step = 5120; a bare constant is its own text."""
    value = side.value.text or "?"
    return value if side.text == value else f"{side.text} = {value}"


def _all_values(tested: Iterable[Condition]) -> str:
    return ", ".join(dict.fromkeys(map(_values, tested)))


def _values(leaf: Condition) -> str:
    if leaf.compared is not None:
        sides = [side for side in leaf.compared.sides() if side.text != side.value.text]
        return " and ".join(f"`{_shown(side)}`" for side in sides)
    return f"`{leaf.text} = {leaf.tested.text if leaf.tested is not None else '?'}`"
