"""Tests that stay what they are: nothing in the loop changes them, or what it does keeps them true."""

from __future__ import annotations

from unstuck.recorder.records.loops import Comparison, Condition
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.tested_values import (
    all_values,
    comparisons,
    earlier_pieces,
    history,
    leaves,
    numbers_of,
    shown,
    value_texts,
    values_of,
)
from unstuck.rules.loop.training_loops import Loop
from unstuck.rules.loop.unreached import MIN_MOMENTS

MIN_STEPS_SHARED = 100  # between two descriptions, for an attribute or a global name: other files could change it too
MIN_PASSES = 3  # over a loader, which do as well as these steps
FAR_PAST_RATIO = 1.5  # so many times the bound is past it for good, not in the last iteration
UNMOVED_SHARE = 0.8  # of the distance at first that is left: it comes no nearer


def constant(loop: Loop, condition: Condition) -> Reason | None:
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


def _may_change(loop: Loop, leaf: Condition) -> bool:
    """It has changed, is not known, or is a container, which changes without being assigned."""
    earlier = earlier_pieces(loop, leaf)
    if not earlier or any(value_texts(each) != value_texts(leaf) for each in earlier):
        return True
    sides = [side.value for side in leaf.compared.sides()] if leaf.compared is not None else [leaf.tested]
    container = any(value is not None and value.kind == "object" for value in sides)
    return leaf.value is None or leaf.calls or container


def or_holds(loop: Loop, test: Condition) -> Reason | None:
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
    if all(constant(loop, part) for part in holding):
        return Reason(past, f"{goes_on} ({all_values(leaf for leaf, _ in leaves(kept))}) and stays true")
    if _far_past(bound) and all(_comes_no_nearer(loop, part) for part in holding):
        return Reason(past, f"{goes_on}: {values_of(kept)}, and it comes no nearer")
    return None


def _has_moved(loop: Loop, leaf: Condition, compared: Comparison) -> bool:
    """A comparison of order or equality whose sides have changed since."""
    first, now = numbers_of(history(loop, leaf)[0]), numbers_of(compared)
    return compared.op in ("<", "<=", "!=", ">", ">=") and None not in now and now != first


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


def kept_true(loop: Loop, test: Condition) -> Reason | None:
    """What the body assigns keeps the test true: a counter that is wrapped, set back or clamped below the bound."""
    names = [name for leaf, _ in leaves(test) for name in leaf.names]
    given = [assignment for name in names for assignment in loop.assigned(name)]
    if not loop.described.stays_true or any(assignment.elsewhere for assignment in given):
        return None
    by = f": `{given[-1].text}` (line {given[-1].line}) keeps it so" if given else ": nothing in the loop changes it"
    return Reason(f"`{test.text}` stays true", by)
