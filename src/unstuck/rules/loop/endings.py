"""Whether a loop can still end: its test, and each way out of it, against the values then and now."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf

from unstuck.recorder.records.loops import Assignment, Comparison, Condition, Side, WayOut
from unstuck.rules.loop.rounds import Loop, comparisons, leaves, number, quoted

MANY_STEPS = 20
"""Steps between two descriptions after which a value that did not change counts as standing."""
MANY_MORE = 100
"""The same for an attribute or a global name, which other files could change too."""
MANY_PASSES = 3
FAR = 1.5
"""So many times the bound is past it for good, not on the last round."""
NEARER = 3
"""Descriptions over which a value that is waited for should have moved."""


def endless_by_itself(loop: Loop) -> bool:
    """`while True`, or a `for` over something that never runs out."""
    if not loop.is_while:
        return loop.described.iterates.ends is False
    test = loop.described.test
    return test.kind == "truth" and bool(test.value) and not test.names


def turned_enough(loop: Loop) -> bool:
    return loop.steps_since >= MANY_STEPS or loop.passes_since >= MANY_PASSES


def why_test_holds(loop: Loop) -> str:
    """Why the test of a `while` can never become false, in words; empty if it can, or if that is not known."""
    test = loop.described.test
    if not loop.is_while or endless_by_itself(loop) or not turned_enough(loop) or test.value is not True:
        return ""
    return (
        _or_holds(loop, test)
        or _jumped(loop, test, wanted=False)
        or _stands(loop, test)
        or _reset(loop, test)
        or _never_set(loop, test)
    )


def why_never_taken(loop: Loop, way: WayOut) -> str:
    """Why this way out will never be taken, in words; empty if it may be."""
    return "" if not turned_enough(loop) or way.met is True else _why_blocked(loop, way.guards)


def _why_blocked(loop: Loop, guards: list[Condition], deep: bool = True) -> str:
    """Why one of these conditions can never hold."""
    for guard in guards:
        value = guard.parts[0].value if guard.kind == "call" else guard.value
        if guard.kind == "other" or value is not (not guard.wanted):
            continue
        why = (
            _jumped(loop, guard, guard.wanted)
            or _stands(loop, guard)
            or _reset(loop, guard)
            or _counts_inside(loop, guard)
            or _cannot_rise(loop, guard)
            or (deep and _never_set(loop, guard))
        )
        if why:
            return why
    return ""


def _never_set(loop: Loop, condition: Condition) -> str:
    """A flag: every statement that would set it waits for something that can never hold."""
    flags = [leaf for leaf, _ in leaves(condition)]
    names = [name for leaf in flags for name in leaf.names]
    given = [each for name in names for each in loop.assigned(name)]
    if not given or not all(map(loop.accounts_for, names)) or any(leaf.kind != "truth" for leaf in flags):
        return ""
    reasons = [_why_blocked(loop, each.guards, deep=False) for each in given]
    if not all(reasons):
        return ""
    return f"{reasons[0]}, so `{names[0]}` is never set (line {given[0].line})"


def _or_holds(loop: Loop, test: Condition) -> str:
    """`A or B`: the bound in B is passed, and A is true whatever happens."""
    holding = [part for part in test.parts if part.value is True]
    if test.kind != "or" or not holding:
        return ""
    over = [part for part in test.parts if part.value is False]
    passed = [(leaf, compared) for part in over for leaf, compared, _ in comparisons(part) if _is_passed(loop, leaf)]
    if not passed:
        return ""
    compared, kept = passed[-1][1], holding[0]
    past = f"`{quoted(compared.left)}` is past `{quoted(compared.right)}`"
    bound = f"{past}, and the loop goes on because `{kept.text}` is true"
    if all(_stands(loop, part) for part in holding):
        return f"{bound} ({_all_values(leaf for leaf, _ in leaves(kept))}) and stays so"
    if _far_past(compared) and all(_comes_no_nearer(loop, part) for part in holding):
        return f"{bound}: {_values(kept)}, and it comes no nearer"
    return ""


def _far_past(compared: Comparison) -> bool:
    left, right = number(compared.left), number(compared.right)
    if not left or not right:
        return False
    return max(left / right, right / left) >= FAR


def _comes_no_nearer(loop: Loop, leaf: Condition) -> bool:
    """A comparison whose two sides have stayed as far from each other as they were, over several descriptions."""
    if leaf.compared is None:
        return False
    told = [*_earlier_comparisons(loop, leaf)[-NEARER:], leaf.compared]
    sides = [(number(each.left), number(each.right)) for each in told]
    gaps = [abs(left - right) for left, right in sides if left is not None and right is not None]
    return len(gaps) > NEARER and gaps[-1] >= 0.8 * gaps[0] > 0


def _is_passed(loop: Loop, leaf: Condition) -> bool:
    """A comparison with a bound that the growing side has gone past."""
    compared = leaf.compared
    if compared is None or compared.op not in ("<", "<=", "!=", ">", ">="):
        return False
    now = number(compared.left), number(compared.right)
    then = _earlier_comparisons(loop, leaf)
    return bool(then) and None not in now and now != (number(then[0].left), number(then[0].right))


def _jumped(loop: Loop, condition: Condition, wanted: bool) -> str:
    """An equality that has been jumped over: the growing side is past it and only grows."""
    for leaf, compared, way in comparisons(condition, wanted):
        if compared.op != ("==" if way else "!=") or _with_others(condition, leaf, wanted):
            continue
        told = [*_earlier_comparisons(loop, leaf), compared]
        for flipped in (False, True):
            growing, bound = compared.sides(flipped)
            if _grew_past([each.sides(flipped) for each in told]) and not _falls(loop, growing):
                return (
                    f"`{quoted(growing)}` has jumped over `{quoted(bound)}`: it grows from step to step "
                    f"and is never equal to it again"
                )
    return ""


def _grew_past(told: list[tuple[Side, Side]]) -> bool:
    """The first side has risen each time, and is past the second, which has stayed."""
    seen = [number(growing) for growing, _ in told]
    bounds = {number(bound) for _, bound in told}
    known = [value for value in seen if value is not None]
    limit = bounds.pop()
    if len(known) < max(2, len(seen)) or bounds or limit is None:
        return False
    return all(sooner < later for sooner, later in pairwise(known)) and known[-1] > limit


def _with_others(condition: Condition, leaf: Condition, wanted: bool) -> bool:
    """Another piece joined to it could do what this one no longer can."""
    if condition is leaf:
        return False
    if condition.kind == "not":
        return _with_others(condition.parts[0], leaf, not wanted)
    if condition.kind != ("and" if wanted else "or"):
        return True
    around = [part for part in condition.parts if part is not leaf and any(each is leaf for each, _ in leaves(part))]
    return any(_with_others(part, leaf, wanted) for part in around)


def _falls(loop: Loop, growing: Side) -> bool:
    """The loop sets the growing name back, or draws it anew in an inner loop."""
    return any(each.kind != "add" for each in loop.assigned(growing.text))


def _stands(loop: Loop, condition: Condition) -> str:
    """Nothing in it changes: no name of it is given a value in the loop, and none has changed since."""
    told = [leaf for leaf, _ in leaves(condition)]
    names = [name for leaf in told for name in leaf.names]
    if not names or any(_may_change(loop, leaf) for leaf in told) or not all(map(loop.settled, names)):
        return ""
    own = all(map(loop.owns, names))
    if not own and loop.steps_since < MANY_MORE and loop.passes_since < MANY_PASSES:
        return ""
    how = "nothing in the loop changes that" if own else f"that has not changed in {loop.steps_since:,} steps"
    return f"`{condition.text}` is tested with {_all_values(told)}, and {how}"


def _may_change(loop: Loop, leaf: Condition) -> bool:
    """It has changed, is not known, or is a container, which changes without being given a new value."""
    then = _earlier(loop, leaf)
    if not then or any(_shown(each) != _shown(leaf) for each in then):
        return True
    held = leaf.tested is not None and leaf.tested.kind in ("object", "unknown")
    return leaf.value is None or leaf.calls or held


def _reset(loop: Loop, condition: Condition) -> str:
    """The tested counter is set back inside the loop, whatever happens, before it can reach its bound."""
    for leaf, compared, _ in comparisons(condition):
        told = [*_earlier_comparisons(loop, leaf), compared]
        for flipped in (False, True):
            counter, bound = compared.sides(flipped)
            given = loop.assigned(counter.text)
            always = [each for each in given if each.kind == "constant" and not each.guards]
            seen = [number(each.sides(flipped)[0]) or 0.0 for each in told]
            if always and any(each.kind == "add" for each in given) and _stays_below(loop, seen, counter, bound):
                return (
                    f"`{counter.text}` is set back by `{always[0].text}` (line {always[0].line}) each time round, so "
                    f"it never reaches `{quoted(bound)}`; it is {number(counter):g} after {loop.step:,} training steps"
                )
    return ""


def _stays_below(loop: Loop, seen: list[float], counter: Side, bound: Side) -> bool:
    limit = number(bound)
    if limit is None or number(counter) is None or max(seen) >= limit:
        return False
    fell = any(later < sooner for sooner, later in pairwise(seen))
    rounds = loop.steps_since >= 2 * limit or loop.passes_since >= MANY_PASSES
    return (fell and rounds) or loop.passes_since > limit


def _counts_inside(loop: Loop, condition: Condition) -> str:
    """The bound is compared with a counter that begins anew in an inner loop, and is more than that one ever counts."""
    inner = [each.counts for each in loop.frame.loops if each.first > loop.line and each.counts is not None]
    for _, compared, _ in comparisons(condition):
        bound = number(compared.right)
        if compared.op not in (">", ">=", "==") or bound is None:
            continue
        for counts in inner:
            if compared.left.text == counts.name and bound > counts.most:
                return (
                    f"`{counts.name}` begins anew with every pass and comes to {counts.most:,} at most, so it "
                    f"never reaches `{quoted(compared.right)}`"
                )
    return ""


def _cannot_rise(loop: Loop, condition: Condition) -> str:
    """A counter whose every increment waits for something that cannot happen."""
    for _, compared, _ in comparisons(condition):
        name = compared.left.text
        raised = [each for each in loop.assigned(name) if each.kind != "constant"]
        if not loop.accounts_for(name) or not raised or number(compared.left) is None:
            continue
        blocks = [_blocked(loop, each) for each in raised]
        if all(blocks):
            return (
                f"`{quoted(compared.left)}` never rises to `{quoted(compared.right)}`: line {raised[0].line} would "
                f"raise it, but {blocks[0]}"
            )
    return ""


def _blocked(loop: Loop, statement: Assignment) -> str:
    """A comparison on the way to the statement has infinity on one side, which nothing in the loop replaces."""
    for guard in statement.guards:
        for leaf, compared, wanted in comparisons(guard, guard.wanted):
            for side, above in ((compared.left, (">", ">=")), (compared.right, ("<", "<="))):
                limit = number(side)
                named = [name for name in leaf.names if name in side.text]
                if limit not in (inf, -inf) or any(map(loop.assigned, named)):
                    continue
                always = (compared.op in above) == (limit == inf)
                if always != wanted:
                    return f"`{leaf.text}` is always {str(always).lower()}: {quoted(side)} is never updated"
    return ""


def _earlier(loop: Loop, leaf: Condition) -> list[Condition]:
    """The same piece of condition in the earlier descriptions of the loop."""
    found: list[Condition] = []
    for before in loop.earlier:
        same = (each for whole in _conditions(before) for each, _ in leaves(whole) if each.text == leaf.text)
        found += [each for each in (next(same, None),) if each is not None]
    return found


def _conditions(loop: Loop) -> Iterator[Condition]:
    if loop.is_while:
        yield loop.described.test
    guards = [guard for way in loop.exits for guard in way.guards]
    guards += [guard for given in loop.described.assigned.values() for each in given for guard in each.guards]
    yield from (guard for guard in guards if guard.kind != "other")


def _earlier_comparisons(loop: Loop, leaf: Condition) -> list[Comparison]:
    return [each.compared for each in _earlier(loop, leaf) if each.compared is not None]


def _shown(leaf: Condition) -> object:
    values = leaf.compared.sides() if leaf.compared is not None else ()
    shown = [side.value for side in values] + [leaf.tested] * (leaf.tested is not None)
    return [(value.kind, value.text) for value in shown if value is not None]


def _all_values(told: Iterator[Condition] | list[Condition]) -> str:
    return ", ".join(dict.fromkeys(map(_values, told)))


def _values(leaf: Condition) -> str:
    if leaf.compared is not None:
        sides = [side for side in leaf.compared.sides() if side.text != side.value.text]
        return " and ".join(f"`{quoted(side)}`" for side in sides)
    return f"`{leaf.text} = {leaf.tested.text if leaf.tested is not None else '?'}`"
