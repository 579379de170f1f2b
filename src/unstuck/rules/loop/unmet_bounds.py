"""Bounds that are never met: what is compared with one has passed it, is set back, cannot rise or no longer falls."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

from unstuck.recorder.records.loops import Assignment, Condition, Side
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.tested_values import (
    both_ways,
    comparisons,
    counters,
    decisive,
    history,
    number_of,
    shown,
    towards,
)
from unstuck.rules.loop.training_loops import Loop
from unstuck.rules.loop.unchanged import MIN_PASSES
from unstuck.rules.loop.unreached import MIN_MOMENTS, why_not_run

MIN_SHARE = 0.5  # of a measure that is compared with percents: less may be a percentage that begins low
SETTLED_MOMENTS = 6  # the last ones, at which a value that is waited for should have come nearer
MIN_STEPS_SETTLED = 200  # between the first and the last of these
SETTLED_SHARE = 2e-6  # of a value is rounding: float32 has seven digits
FAR_SHARE = 0.9  # of the value, or less, is a bound that it has not just about reached
ROUNDING = 1e-5  # a change or an error of less than this may be rounding alone
_MEASURES = re.compile(
    r"(^|[_.])(val|valid|test|train|top\d|best|mean|avg|m)?_?(acc|accuracy|f1|precision|recall|auc|auroc|iou|dice)(?![a-z])"
)


def jumped(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
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


def share_for_percent(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """An accuracy that is a share of 1 is waited for until it reaches a number of percents."""
    for sides in counters(loop, condition, wanted):
        share, bound = sides[-1]
        known = [value for side, _ in sides if (value := number_of(side)) is not None]
        limit = number_of(bound)
        if not _MEASURES.search(share.text.lower()) or limit is None or not 1 < limit <= 100:
            continue
        if len(known) > MIN_MOMENTS and max(known) <= 1 and min(known[-MIN_MOMENTS:]) >= MIN_SHARE:
            return Reason(
                f"`{shown(share)}` never reaches `{shown(bound)}`",
                f": it is a share between 0 and 1 ({', '.join(f'{value:.3g}' for value in known[-4:])}), the bound "
                "a number of percent",
                observed=True,
            )
    return None


def reset(loop: Loop, condition: Condition) -> Reason | None:
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


def _stays_below(loop: Loop, seen: list[float], counter: Side, bound: Side) -> bool:
    limit = number_of(bound)
    if limit is None or number_of(counter) is None or max(seen) >= limit:
        return False
    fell = any(later < sooner for sooner, later in pairwise(seen))
    often = loop.steps_since >= 2 * limit or loop.passes_since >= MIN_PASSES
    return (fell and often) or loop.passes_since > limit


def restarts_inside(loop: Loop, condition: Condition) -> Reason | None:
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


def cannot_rise(loop: Loop, condition: Condition) -> Reason | None:
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


def settled(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """A loss or an error that is waited for until it falls to a bound, and that has stopped falling far above it."""
    if not loop.is_innermost or len(loop.earlier) < SETTLED_MOMENTS - 1:
        return None
    if loop.step - loop.earlier[1 - SETTLED_MOMENTS].step < MIN_STEPS_SETTLED:
        return None
    for leaf, way in decisive(condition, wanted):
        falling = [(value, bound) for bound, value in towards(loop, leaf, way)]
        how = _stays_above(falling) if falling and _made_anew(loop, leaf, falling[-1][0]) else ""
        if how:
            value, bound = falling[-1]
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
