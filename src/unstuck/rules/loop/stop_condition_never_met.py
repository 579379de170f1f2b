"""stop-condition-never-met: the loop around the training cannot end.

What it sees
    The training makes steps, and the `while` (or endless `for`) around them has a test, or a way out, that can no
    longer come true: the bound was passed and another part of the test keeps it going; a counter jumped over the
    value it is compared with; nothing in the loop changes what is tested; a counter is set back each time round; a
    `break` leaves only the inner loop.

Why it matters
    It does not: it goes on past the end that the script itself names.

Evidence
    The condition with the values its names have now, read from the running script several times without running
    anything of it, and how many steps were made meanwhile.

Fix
    Mend the one condition shown.

When it is wrong
    If something outside the script's file changes the tested value later, by a name this file never assigns. A
    condition that calls a function is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loops import DescribedLoop
from unstuck.rules.loop.endings import endless_by_itself, turned_enough, why_never_taken, why_test_holds
from unstuck.rules.loop.rounds import Loop, Moment, moments
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome in ("finished", "died"):
        return
    for moment in moments(case):
        for place, loop in enumerate(moment.loops):
            found = _judge(moment, place, loop)
            if found is not None:
                yield found
                break


def _judge(moment: Moment, place: int, loop: Loop) -> Finding | None:
    why = why_test_holds(loop)
    if not why and not endless_by_itself(loop):
        return None
    never = [(way, why_never_taken(loop, way)) for way in loop.exits]
    if any(not reason for _, reason in never):
        return None
    if why:
        fix = f"Mend the test of the loop at line {loop.line}: `{loop.text}`."
        return _finding(loop, loop.where(), why, fix)
    if never:
        way, reason = never[0]
        fix = f"Mend the condition of the `{way.kind}` at line {way.line}: it is the loop's only way out."
        return _finding(loop, loop.where(way.line), reason, fix)
    return _left_only_inside(moment, place, loop)


def _left_only_inside(moment: Moment, place: int, outer: Loop) -> Finding | None:
    """A way out of an inner loop is taken again and again, and the outer one has none."""
    if not turned_enough(outer):
        return None
    for inner in moment.loops[place + 1 :]:
        if inner.frame.number != outer.frame.number:
            continue
        before = {way.line for each in _before(outer, inner) for way in each.exits if way.met is True}
        for way in inner.exits:
            if way.kind == "break" and way.met is True and way.guards and way.line in before:
                text = " and ".join(guard.text for guard in way.guards)
                why = (
                    f"`{text}` is true, and the `break` at line {way.line} leaves only the loop at line "
                    f"{inner.line}; nothing leaves `{outer.text}` around it"
                )
                fix = f"Leave the loop at line {outer.line} too when `{text}`, or put this into its test."
                return _finding(outer, outer.where(way.line), why, fix)
    return None


def _before(outer: Loop, inner: Loop) -> list[DescribedLoop]:
    """The inner loop as it was described before: its own frame's other loops of the same lines."""
    return [loop for each in outer.earlier for loop in each.frame.loops if loop.first == inner.line]


def _finding(loop: Loop, where: Where, why: str, fix: str) -> Finding:
    since = f"{loop.steps_since:,} training steps" if loop.steps_since else f"{loop.passes_since:,} passes"
    return RULE.finding(
        severity="error",
        confidence=0.95 if len(loop.earlier) > 1 else 0.9,
        title=f"the loop at line {loop.line} cannot end: {_in_short(why)}",
        evidence=(
            why,
            f"the loop is `{loop.text}`; {since} were made in it in {loop.seconds_since:.0f} s, {loop.step:,} in all",
            f"its values were read {len(loop.earlier) + 1} times meanwhile",
        ),
        where=where,
        fix=Fix(fix),
        seen_by="flight",
    )


def _in_short(why: str) -> str:
    """The first clause, where it says enough by itself."""
    first = why.partition(", and the loop goes on")[0].partition(": it grows")[0]
    return first.partition("; it is")[0]


RULE = Rule(
    "stop-condition-never-met",
    "loop",
    decide,
    explains=frozenset(("endless-epoch", "loader-rebuilt-every-step")),
    disproved_by_end=True,
)
