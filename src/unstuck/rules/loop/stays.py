"""Values that stay as they are: every statement that could change one gives it the same again, or never runs; or it is
measured anew in each round, on what no step changes.

The former is decided for several names together: as long as all of them are what they are, none of them can change.
"""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.recorder.records.loops import Assignment, Condition
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.tested_values import decisive, earlier_pieces, shown, value_texts, values_of
from unstuck.rules.loop.training_loops import Loop
from unstuck.text import listed

MIN_EARLIER = 2  # readings at which it was the same
MIN_MEASURED = 5  # the same of a measure,
MIN_STEPS_MEASURED = 1000  # and steps since the first of these: some things are changed once in hundreds of steps


def why_it_stays(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """Why a condition can never come out as wanted."""
    for leaf, way in decisive(condition, wanted):
        if leaf.compared is None or leaf.value is not (not way):
            continue
        before = earlier_pieces(loop, leaf)[-MIN_EARLIER:]
        if len(before) < MIN_EARLIER:
            continue
        if leaf.compared.nan_by and all(each.compared and each.compared.nan_by for each in before):
            why = _nan(loop, leaf)
        else:
            same = all(value_texts(each) == value_texts(leaf) for each in before)
            why = _same(loop, leaf) or _measured(loop, leaf) if same else None
        if why is not None:
            return why
    return None


def _same(loop: Loop, leaf: Condition) -> Reason | None:
    given = [each for name in leaf.names for each in loop.assigned(name)]
    if not given or leaf.calls or leaf.compared is None or not _all_stay(loop, leaf.names):
        return None
    keeps = next((each for each in given if each.same and each.kind != "constant"), None)
    if keeps is None:
        return None
    moving = next(side for side in leaf.compared.sides() if any(name in side.text for name in leaf.names))
    return Reason(
        f"`{shown(moving)}` stays what it is",
        f": `{keeps.text}` (line {keeps.line}) gives it the same value again, so `{leaf.text}` stays "
        f"{str(leaf.value).lower()}",
        observed=True,
        fix=f"Correct line {keeps.line} so that the value moves on each time, up to where `{leaf.text}` changes.",
    )


def _nan(loop: Loop, leaf: Condition) -> Reason | None:
    names = leaf.compared.nan_by if leaf.compared is not None else []
    if not _all_stay(loop, names):
        return None
    closed = list(_closed(loop, names))
    source = next(
        (name for name in closed if not any(each.kind == "append" for each in loop.assigned(name))), closed[0]
    )
    waits = next(((each, guard) for each in loop.assigned(source) for guard in each.guards), None)
    more = f": it is NaN as long as `{source}` is infinite, and every comparison with NaN is false"
    if waits is not None:
        statement, guard = waits
        more += f"; `{statement.text}` (line {statement.line}), which would replace it, waits for `{guard.text}`"
    return Reason(
        f"`{leaf.text}` compares with NaN",
        more,
        observed=True,
        fix=f"Begin with a finite `{source}`, or set it at the first check whatever comes out.",
    )


def _measured(loop: Loop, leaf: Condition) -> Reason | None:
    pieces, moments = earlier_pieces(loop, leaf)[-MIN_MEASURED:], loop.earlier[-MIN_MEASURED:]
    moving = [name for name in leaf.names if not loop.never_changes(name)]
    given = loop.assigned(moving[0]) if len(moving) == 1 and loop.accounts_for(moving[0]) else []
    if len(given) != 1 or not given[0].measured_from or not loop.is_innermost or len(pieces) < MIN_MEASURED:
        return None
    steps = loop.step - moments[0].step
    prints = {each.measured_from for before in moments for each in before.assigned(moving[0])}
    same = all(value_texts(each) == value_texts(leaf) for each in pieces)
    if not same or prints != {given[0].measured_from} or steps < MIN_STEPS_MEASURED:
        return None
    read = listed([f"`{name}`" for name in given[0].reads])
    return Reason(
        f"no step changes what `{moving[0]}` is measured on",
        f": {values_of(leaf)}; line {given[0].line} is `{given[0].text}`, and {read} stayed the same through "
        f"{steps:,} steps",
        observed=True,
        fix=f"Measure at line {given[0].line} something that the steps of this loop change, made anew in each round.",
    )


def _all_stay(loop: Loop, names: list[str]) -> bool:
    return all(_stays(loop, name) for name in _closed(loop, names))


def _closed(loop: Loop, names: list[str]) -> Iterator[str]:
    """The names, and all that their staying rests on."""
    waiting, known = list(names), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in known:
            continue
        known.add(name)
        yield name
        for each in loop.assigned(name):
            never = _never_runs(each)
            waiting += each.reads if each.same else never or ()


def _stays(loop: Loop, name: str) -> bool:
    """As long as those that it rests on do."""
    if loop.never_changes(name):
        return True
    return loop.accounts_for(name) and all(each.same or _never_runs(each) is not None for each in loop.assigned(name))


def _never_runs(statement: Assignment) -> list[str] | None:
    """The names that keep a statement from running; None if it may run."""
    for guard in statement.guards:
        for leaf, wanted in decisive(guard, guard.wanted):
            if leaf.compared is not None and leaf.value is not None and leaf.value is not wanted:
                if leaf.compared.nan_by:
                    return leaf.compared.nan_by
                if not leaf.calls:
                    return leaf.names
    return None
