"""Why a statement in a loop is never reached: a comparison on the way to it always comes out the other way."""

from __future__ import annotations

from itertools import pairwise
from math import inf, isnan

from unstuck.recorder.records.loops import Assignment, Comparison, Condition, Limits, Side
from unstuck.rules.loop.tested_values import both_ways, decisive, earlier_pieces, leaves, number_of, parted, shown
from unstuck.rules.loop.training_loops import Loop

NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
MIN_MOMENTS = 3  # before now, at which a value that is waited for should have moved


def why_not_run(loop: Loop, statement: Assignment) -> str:
    """Why a statement is never reached: a comparison on the way to it always comes out the other way."""
    for guard in statement.guards:
        for leaf, wanted in decisive(guard, guard.wanted):
            if leaf.compared is None:
                continue
            why = (
                beyond_limits(loop, leaf, wanted)
                or _blocked_by_infinity(loop, leaf, leaf.compared, wanted)
                or _blocked_by_nan(loop, leaf, leaf.compared, wanted)
                or _blocked_by_slack(loop, leaf, leaf.compared, wanted)
            )
            if why:
                return why
    return ""


def beyond_limits(loop: Loop, leaf: Condition, wanted: bool) -> str:
    """It asks of a number what it can never be: more than a deque can hold, a rate below its scheduler's least."""
    if leaf.compared is None or leaf.compared.op not in REVERSED:
        return ""
    needed = leaf.compared.op if wanted else NEGATED[leaf.compared.op]
    for sides, op in zip(both_ways(loop, leaf), (needed, REVERSED[needed]), strict=True):
        value, bound = sides[-1]
        known = {(_range(each), number_of(other)) for each, other in sides}
        given = [name for name in leaf.names if name in bound.text and loop.assigned(name)]
        limit = number_of(bound)
        if len(known) > 1 or given or limit is None or value.limits is None:
            continue
        why = _never(op, limit, value.limits)
        if why:
            return f"`{leaf.text}` is always {str(not wanted).lower()}: `{value.text}` is never {why}"
    return ""


def _range(side: Side) -> tuple[float | None, float | None] | None:
    return None if side.limits is None else (side.limits.least, side.limits.most)


def _never(op: str, limit: float, of: Limits) -> str:
    if of.most is not None and ((op == ">" and limit >= of.most) or (op in (">=", "==") and limit > of.most)):
        return f"above {of.most:g} ({of.by})"
    if of.least is not None and ((op == "<" and limit <= of.least) or (op in ("<=", "==") and limit < of.least)):
        return f"below {of.least:g} ({of.by})"
    return ""


def _blocked_by_infinity(loop: Loop, leaf: Condition, compared: Comparison, wanted: bool) -> str:
    """It has infinity on one side, which nothing in the loop replaces."""
    for side, above in ((compared.left, (">", ">=")), (compared.right, ("<", "<="))):
        limit = number_of(side)
        named = [name for name in leaf.names if name in side.text]
        if limit not in (inf, -inf) or any(map(loop.assigned, named)):
            continue
        always = (compared.op in above) == (limit == inf)
        if always != wanted:
            return f"`{leaf.text}` is always {str(always).lower()}: {shown(side)} is never updated"
    return ""


def _blocked_by_nan(loop: Loop, leaf: Condition, compared: Comparison, wanted: bool) -> str:
    """It has had NaN on one side at the last descriptions: every order with NaN is false."""
    ordered = compared.op in ("<", "<=", ">", ">=", "==")
    for sides in both_ways(loop, leaf) if wanted and ordered else ():
        values = [side.value.number for side, _ in sides[-MIN_MOMENTS - 1 :]]
        if len(values) > MIN_MOMENTS and all(value is not None and isnan(value) for value in values):
            return f"`{leaf.text}` is always false: {shown(sides[-1][0])}"
    return ""


def _blocked_by_slack(loop: Loop, leaf: Condition, compared: Comparison, wanted: bool) -> str:
    """`value < best + delta` (or `value - best < delta`) lets a worse value replace the best one: the best is seen to
    move the wrong way, and the comparison that would notice it comes out as an improvement each time."""
    if compared.op not in ("<", "<=", ">", ">=") or compared.apart:
        return ""
    moments = [sides for each in (*earlier_pieces(loop, leaf), leaf) if (sides := parted(each))]
    for place, improves in enumerate((">", "<")):
        best, smaller = moments[-1][place], (compared.op[0] == improves) != wanted
        replaced = [each for name in leaf.names if name in best.text for each in loop.assigned(name)]
        guards = [piece for each in replaced for guard in each.guards for piece in leaves(guard, guard.wanted)]
        by_this = any(piece.text == leaf.text and way != wanted for piece, way in guards)
        values = [number_of(sides[place]) for sides in moments]
        known = [value for value in values if value is not None and abs(value) != inf]
        worse = [(old, new) for old, new in pairwise(known) if (new > old if smaller else new < old)]
        if by_this and worse and len(known) > MIN_MOMENTS:
            old, new = worse[-1]
            moved = "rose" if smaller else "fell"
            return f"`{leaf.text}` takes worse for better: `{best.text}` {moved} from {old:.6g} to {new:.6g}"
    return ""
