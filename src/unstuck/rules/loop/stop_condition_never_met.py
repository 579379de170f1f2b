"""stop-condition-never-met: the loop around the training cannot end.

What it sees
    The training makes steps, and the `while` (or endless `for`) around them has a test, or a way out, that can no
    longer come true: the bound was passed and another part of the test keeps it going; a counter jumped over the value
    it is compared with, or can never have it (more than a deque holds, a rate below the least of its scheduler, a
    remainder); nothing in the loop changes what is tested; a counter is reset in every iteration, or wrapped,
    set back or clamped below its bound; a flag that one statement sets is cleared by another (a second callback, the
    trainer as the epoch begins) before each test, or is set in a copy of the state; a `break` leaves only the inner
    loop; early stopping compares with NaN, for good where the best value stays infinite, or takes a worse value for the
    best; an accuracy between 0 and 1 is compared with percents; a loss or an error is to fall below a bound and has
    stopped falling far above it. What is tested gets the value that it has already (`floor(6 * 1.15)` is 6, a cap
    is below the goal); or it is measured anew in each iteration on a batch or a model that no step changes. The
    beginning of a time budget, or a deadline, is set anew by the loop itself every so many rounds. A counter has
    stopped rising because each round passes over what raises it, and no step is made either. Only forked children
    change what the loop tests, each in a copy of its own (a plain dict, an attribute, a global name). A `for` over a
    range that lasts for hours more, a hundred times what is done, counts as endless where the stop inside it can no
    longer come.

Why it matters
    The run trains on past the end that the script itself names, until somebody kills it: hours of compute, and
    nothing that comes after the loop (the last checkpoint, the evaluation) ever happens.

Evidence
    The condition with the values its names have now, read several times from the running script without running
    any of its code, and how many steps were made meanwhile.

Fix
    Correct the one condition shown.

When it is wrong
    If something outside the script's file changes the tested value later, by a name this file never assigns. A
    condition that calls a function is judged only where the function is the script's own and plain to read. A loss
    that stays the same to six digits for hundreds of steps, and then falls after all. A model on which the stop is
    measured, and which something unseen renews after more than a thousand steps. A counter of which one round in very
    many raises again, after ten times what was usual, though the model did not change meanwhile: an environment that
    comes to an end very late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.learning import Loss
from unstuck.rules.loop.copies import waits_for_copies
from unstuck.rules.loop.endings import seconds_left, turned_enough, why_never_taken, why_test_holds
from unstuck.rules.loop.no_longer import Skipped, skipped
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.training_loops import Loop, Moment, moments
from unstuck.rules.rule import Rule
from unstuck.rules.training import main_loss, several_losses
from unstuck.rules.words import seconds


def decide(case: Case) -> Iterable[Finding]:
    if case.outcome in ("finished", "died"):
        return
    for moment in moments(case):
        loss = _telling_loss(case, moment.snapshot.pid)
        judged = (_judge(moment, depth, replace(loop, loss=loss)) for depth, loop in enumerate(moment.loops))
        yield from [finding for finding in judged if finding is not None][:1]
    yield from map(_skipping, skipped(case))
    yield from waits_for_copies(RULE, case)


def _telling_loss(case: Case, pid: int) -> Loss | None:
    learning = next((each for each in reversed(case.learnings) if each.pid == pid), None)
    return None if learning is None or several_losses(learning) else main_loss(learning)


def _judge(moment: Moment, depth: int, loop: Loop) -> Finding | None:
    holds, left = why_test_holds(loop), seconds_left(loop)
    if holds is None and not loop.is_endless and left is None:
        return None
    never = [(way, reason) for way in loop.exits if (reason := why_never_taken(loop, way))]
    if len(never) < len(loop.exits):
        return None
    if left is not None:  # a bound there is: only a stop that was meant to come before it counts
        never = [(way, reason) for way, reason in never if reason.observed]
        if not never:
            return None
    chance = next((reason for _, reason in never if reason.by_chance), None)
    if holds is not None:
        holds = chance or holds
        return _finding(loop, loop.where(), holds, f"Correct the test of the loop at line {loop.line}: `{loop.text}`.")
    if chance is not None:
        never.sort(key=lambda pair: not pair[1].by_chance)
    if never:
        way, reason = never[0]
        if left is not None:
            reason = replace(reason, more=f"{reason.more}; the range itself ends in {seconds(left)} at this pace")
        fix = f"Correct the condition of the `{way.kind}` at line {way.line}: it is the loop's only way out."
        return _finding(loop, loop.where(way.line), reason, fix)
    return _left_only_inside(moment, depth, loop)


def _left_only_inside(moment: Moment, depth: int, outer: Loop) -> Finding | None:
    """A way out of an inner loop is taken again and again, and the outer one has none."""
    if not turned_enough(outer):
        return None
    for inner in moment.loops[depth + 1 :]:
        if inner.frame.number != outer.frame.number:
            continue
        before = [loop for each in outer.earlier for loop in each.frame.loops if loop.first == inner.line]
        taken = {way.line for loop in before for way in loop.exits if way.met is True}
        for way in inner.exits:
            if way.kind == "break" and way.met is True and way.guards and way.line in taken:
                condition = " and ".join(guard.text for guard in way.guards)
                reason = Reason(
                    f"the `break` at line {way.line} leaves only the loop at line {inner.line}",
                    f": `{condition}` is true, and nothing leaves `{outer.text}` around it",
                )
                fix = f"Leave the loop at line {outer.line} too when `{condition}`, or put this into its test."
                return _finding(outer, outer.where(way.line), reason, fix)
    return None


def _skipping(each: Skipped) -> Finding:
    loop, statement = each.loop, each.statement
    return each.still.finding(
        RULE,
        confidence=0.75 if each.still.asked else 0.85,
        title=f"the loop at line {loop.line} no longer comes to `{statement.text}`, by which it ends",
        evidence=each.evidence,
        where=loop.where(statement.line),
        fix=each.fix,
        seen_by=each.still.stacks_by,
        also=(loop.where(),),
    )


def _finding(loop: Loop, where: Where, reason: Reason, fix: str) -> Finding:
    if reason.site is not None:
        where = replace(where, file=reason.site[0], line=reason.site[1], function=reason.site[2] or where.function)
    since = f"{loop.steps_since:,} training steps" if loop.steps_since else f"{loop.passes_since:,} passes"
    ends = "will hardly end" if reason.by_chance else "cannot end"
    return RULE.finding(
        severity="warning" if reason.by_chance else "error",
        confidence=0.75 if reason.by_chance else 0.95 if reason.proven and len(loop.earlier) > 1 else 0.9,
        title=f"the loop at line {loop.line} {ends}: {reason.short}",
        evidence=(
            reason.text,
            f"the loop is `{loop.text}`; it made {since} in {loop.seconds_since:.0f} s, {loop.step:,} steps in all",
            f"its values were read {len(loop.earlier) + 1} times meanwhile",
        ),
        where=where,
        fix=Fix(reason.fix or fix),
        seen_by="flight",
        also=(loop.where(),) if reason.site is not None else (),
    )


RULE = Rule(
    "stop-condition-never-met",
    "loop",
    decide,
    explains=frozenset(("endless-epoch", "loader-rebuilt-every-step", "main-spins")),
    disproved_by_end=True,
)
