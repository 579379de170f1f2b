"""Whether a loop can still end: its test, and each way out of it, against the values then and now."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from unstuck.rules.loop.rounds import Loop, leaves, number, quoted

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
    if loop.is_while:
        test = loop.told["test"]
        return bool(test["kind"] == "truth" and test["value"] and not test["names"])
    return loop.told["iterates"]["ends"] is False


def turned_enough(loop: Loop) -> bool:
    return loop.steps_since >= MANY_STEPS or loop.passes_since >= MANY_PASSES


def why_test_holds(loop: Loop) -> str:
    """Why the test of a `while` can never become false, in words; empty if it can, or if that is not known."""
    if not loop.is_while or endless_by_itself(loop) or not turned_enough(loop):
        return ""
    test = loop.told["test"]
    if test["value"] is not True:
        return ""
    return (
        _or_holds(loop, test)
        or _jumped(loop, test, wanted=False)
        or _stands(loop, test)
        or _reset(loop, test, False)
        or _never_set(loop, test)
    )


def why_never_taken(loop: Loop, way: dict[str, Any]) -> str:
    """Why this way out will never be taken, in words; empty if it may be."""
    return "" if not turned_enough(loop) or way["met"] is True else _why_blocked(loop, way["guards"])


def _why_blocked(loop: Loop, guards: list[dict[str, Any]], deep: bool = True) -> str:
    """Why one of these conditions can never hold."""
    for guard in guards:
        wanted, value = guard["wanted"], guard["parts"][0]["value"] if guard["kind"] == "call" else guard["value"]
        if guard["kind"] == "other" or value is not (not wanted):
            continue
        why = (
            _jumped(loop, guard, wanted)
            or _stands(loop, guard)
            or _reset(loop, guard, wanted)
            or _counts_inside(loop, guard)
            or _cannot_rise(loop, guard)
            or (deep and _never_set(loop, guard))
        )
        if why:
            return why
    return ""


def _never_set(loop: Loop, condition: dict[str, Any]) -> str:
    """A flag: every statement that would set it waits for something that can never hold."""
    names = [name for leaf, _ in leaves(condition) for name in leaf.get("names", ())]
    given = [each for name in names for each in loop.assigned(name)]
    if (
        not given
        or not all(map(loop.accounts_for, names))
        or any(leaf["kind"] != "truth" for leaf, _ in leaves(condition))
    ):
        return ""
    reasons = [_why_blocked(loop, each["guards"], deep=False) for each in given]
    if not all(reasons):
        return ""
    return f"{reasons[0]}, so `{names[0]}` is never set (line {given[0]['line']})"


def _or_holds(loop: Loop, test: dict[str, Any]) -> str:
    """`A or B`: the bound in B is passed, and A is true whatever happens."""
    if test["kind"] != "or":
        return ""
    holding = [part for part in test["parts"] if part["value"] is True]
    passed = [
        leaf for part in test["parts"] if part["value"] is False for leaf, _ in leaves(part) if _is_passed(loop, leaf)
    ]
    if not passed or not holding:
        return ""
    leaf, kept = passed[-1], holding[0]
    past = f"`{quoted(leaf['left'])}` is past `{quoted(leaf['right'])}`"
    bound = f"{past}, and the loop goes on because `{kept['text']}` is true"
    if all(_stands(loop, part) for part in holding):
        values = ", ".join(dict.fromkeys(_values(part) for part, _ in leaves(kept)))
        return f"{bound} ({values}) and stays so"
    if far_past(leaf) and all(_comes_no_nearer(loop, part) for part in holding):
        return f"{bound}: {_values(kept)}, and it comes no nearer"
    return ""


def far_past(leaf: dict[str, Any]) -> bool:
    left, right = number(leaf["left"]), number(leaf["right"])
    if left is None or right is None or not left or not right:
        return False
    return max(left / right, right / left) >= FAR


def _comes_no_nearer(loop: Loop, leaf: dict[str, Any]) -> bool:
    """A comparison whose two sides have stayed as far from each other as they were, over several descriptions."""
    if leaf["kind"] != "compare":
        return False
    told = [*_earlier(loop, leaf)[-NEARER:], leaf]
    sides = [(number(each["left"]), number(each["right"])) for each in told]
    gaps = [abs(left - right) for left, right in sides if left is not None and right is not None]
    return len(gaps) > NEARER and gaps[-1] >= 0.8 * gaps[0] > 0


def _is_passed(loop: Loop, leaf: dict[str, Any]) -> bool:
    """A comparison with a bound that the growing side has gone past."""
    if leaf["kind"] != "compare" or leaf["op"] not in ("<", "<=", "!=", ">", ">="):
        return False
    left, right = number(leaf["left"]), number(leaf["right"])
    then = _earlier(loop, leaf)
    if left is None or right is None or not then:
        return False
    return (left, right) != (number(then[0]["left"]), number(then[0]["right"]))


def _jumped(loop: Loop, condition: dict[str, Any], wanted: bool) -> str:
    """An equality that has been jumped over: the growing side is past it and only grows."""
    for leaf, way in leaves(condition, wanted):
        if leaf["kind"] != "compare" or leaf["op"] != ("==" if way else "!="):
            continue
        if _with_others(condition, leaf, wanted):
            continue
        for growing, bound in (("left", "right"), ("right", "left")):
            seen = [number(each[growing]) for each in (*_earlier(loop, leaf), leaf)]
            bounds = {number(each[bound]) for each in (*_earlier(loop, leaf), leaf)}
            if None in seen or len(bounds) != 1 or len(seen) < 2:
                continue
            known, limit = [value for value in seen if value is not None], bounds.pop()
            rising = all(sooner < later for sooner, later in pairwise(known))
            if rising and limit is not None and known[-1] > limit and not _falls(loop, leaf, growing):
                return (
                    f"`{quoted(leaf[growing])}` has jumped over `{quoted(leaf[bound])}`: it grows from step to step "
                    f"and is never equal to it again"
                )
    return ""


def _with_others(condition: dict[str, Any], leaf: dict[str, Any], wanted: bool) -> bool:
    """Another piece joined to it could do what this one no longer can."""
    if condition is leaf:
        return False
    if condition["kind"] == "not":
        return _with_others(condition["parts"][0], leaf, not wanted)
    joined = "and" if wanted else "or"
    return condition["kind"] != joined or any(
        part is not leaf and leaf in [each for each, _ in leaves(part)] and _with_others(part, leaf, wanted)
        for part in condition["parts"]
    )


def _falls(loop: Loop, leaf: dict[str, Any], side: str) -> bool:
    """The loop sets the growing name back, or draws it anew in an inner loop."""
    return any(each["kind"] != "add" for each in loop.assigned(leaf[side]["text"]))


def _stands(loop: Loop, condition: dict[str, Any]) -> str:
    """Nothing in it changes: no name of it is given a value in the loop, and none has changed since."""
    told = [leaf for leaf, _ in leaves(condition)]
    names = [name for leaf in told for name in leaf.get("names", ())]
    if not names or any(not _earlier(loop, leaf) for leaf in told):
        return ""
    if any(_shown(then) != _shown(leaf) for leaf in told for then in _earlier(loop, leaf)):
        return ""
    if any(leaf["value"] is None or leaf["calls"] or isinstance(leaf.get("is"), dict) for leaf in told):
        return ""  # not known, or a container, which changes without being given a new value
    if not all(map(loop.settled, names)):
        return ""
    own = all(map(loop.owns, names))
    if not own and loop.steps_since < MANY_MORE and loop.passes_since < MANY_PASSES:
        return ""
    values = ", ".join(dict.fromkeys(_values(leaf) for leaf in told))
    how = "nothing in the loop changes that" if own else f"that has not changed in {loop.steps_since:,} steps"
    return f"`{condition['text']}` is tested with {values}, and {how}"


def _reset(loop: Loop, condition: dict[str, Any], wanted: bool) -> str:
    """The tested counter is set back inside the loop, whatever happens, before it can reach its bound."""
    for leaf, _ in leaves(condition, wanted):
        if leaf["kind"] != "compare":
            continue
        for side, other in (("left", "right"), ("right", "left")):
            name, value, bound = leaf[side]["text"], number(leaf[side]), number(leaf[other])
            given = loop.assigned(name)
            always = [each for each in given if each["kind"] == "constant" and not each["guards"]]
            if not always or value is None or bound is None or not any(each["kind"] == "add" for each in given):
                continue
            seen = [number(each[side]) or 0.0 for each in (*_earlier(loop, leaf), leaf)]
            fell = any(later < sooner for sooner, later in pairwise(seen))
            rounds = loop.steps_since >= 2 * bound or loop.passes_since >= MANY_PASSES
            if max(seen) < bound and ((fell and rounds) or loop.passes_since > bound):
                return (
                    f"`{name}` is set back by `{always[0]['text']}` (line {always[0]['line']}) each time round, so it "
                    f"never reaches `{quoted(leaf[other])}`; it is {value:g} after {loop.step:,} training steps"
                )
    return ""


def _counts_inside(loop: Loop, condition: dict[str, Any]) -> str:
    """The bound is compared with a counter that begins anew in an inner loop, and is more than that one ever counts."""
    inner = [
        told["counts"] for told in loop.frame["loops"] if told["first"] > loop.told["first"] and told.get("counts")
    ]
    for leaf, _ in leaves(condition):
        for counts in inner if leaf["kind"] == "compare" and leaf["op"] in (">", ">=", "==") else ():
            bound = number(leaf["right"])
            if leaf["left"]["text"] == counts["name"] and bound is not None and bound > counts["most"]:
                return (
                    f"`{counts['name']}` begins anew with every pass and comes to {counts['most']:,} at most, so it "
                    f"never reaches `{quoted(leaf['right'])}`"
                )
    return ""


def _cannot_rise(loop: Loop, condition: dict[str, Any]) -> str:
    """A counter whose every increment waits for something that cannot happen."""
    for leaf, _ in leaves(condition):
        if leaf["kind"] != "compare" or not turned_enough(loop):
            continue
        name = leaf["left"]["text"]
        raised = [each for each in loop.assigned(name) if each["kind"] != "constant"]
        if not loop.accounts_for(name) or not raised or number(leaf["left"]) is None:
            continue
        blocks = [_blocked(loop, each) for each in raised]
        if all(blocks):
            return (
                f"`{quoted(leaf['left'])}` never rises to `{quoted(leaf['right'])}`: line {raised[0]['line']} would "
                f"raise it, but {blocks[0]}"
            )
    return ""


def _blocked(loop: Loop, statement: dict[str, Any]) -> str:
    """A comparison on the way to the statement has infinity on one side, which nothing in the loop replaces."""
    for guard in statement["guards"]:
        for leaf, wanted in leaves(guard, guard["wanted"]) if guard["kind"] != "other" else ():
            if leaf["kind"] != "compare":
                continue
            for side in ("left", "right"):
                limit = number(leaf[side])
                named = [name for name in leaf["names"] if name in leaf[side]["text"]]
                if limit in (float("inf"), float("-inf")) and not any(map(loop.assigned, named)):
                    always = (
                        (leaf["op"] in ("<", "<=")) == ((limit or 0) > 0)
                        if side == "right"
                        else (leaf["op"] in (">", ">=")) == ((limit or 0) > 0)
                    )
                    if always != wanted:
                        return (
                            f"`{leaf['text']}` is always {str(always).lower()}: {quoted(leaf[side])} is never updated"
                        )
    return ""


def _earlier(loop: Loop, leaf: dict[str, Any]) -> list[dict[str, Any]]:
    """The same piece of condition in the earlier descriptions of the loop."""
    found = []
    for before in loop.earlier:
        conditions = [before.told["test"]] if before.is_while else []
        given = [each for name in before.told["assigned"] for each in before.assigned(name)]
        conditions += [g for way in (*before.exits, *given) for g in way["guards"] if g["kind"] != "other"]
        same = [each for whole in conditions for each, _ in leaves(whole) if each["text"] == leaf["text"]]
        found += same[:1]
    return found


def _shown(leaf: dict[str, Any]) -> object:
    return (leaf["left"]["value"], leaf["right"]["value"]) if leaf["kind"] == "compare" else leaf["is"]


def _values(leaf: dict[str, Any]) -> str:
    if leaf["kind"] == "compare":
        sides = [leaf[side] for side in ("left", "right") if leaf[side]["text"] != repr(leaf[side]["value"])]
        return " and ".join(f"`{quoted(side)}`" for side in sides)
    return f"`{leaf['text']} = {leaf['is'] if not isinstance(leaf['is'], str) else repr(leaf['is'])}`"
