"""rank-exited-early: a rank left the training while the others still need it.

What it sees
    A rank has ended, or stands in a call behind its training loop, or in its last one before it returns, and other
    ranks wait for it in a collective, or died of that; also where the script that started them only waits for their
    ends, and ends with exit code 0.

Why it matters
    The others cannot go on without it: they stand still, or die of a lost connection, which hides the cause.

Evidence
    Which rank left, where, after how many steps; and the roll-call of those that wait for it. If it died of something
    that has its own finding, that one is the cause.

Fix
    Let every rank take part until the end: a rank without data needs a share of them, or the world must be made without
    it.

When it is wrong
    Never seen: nobody else can make the calls of the rank that left.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.loops import WayOut
from unstuck.rules.ranks.fewer_rounds import loops_around
from unstuck.rules.ranks.separation import Separation, separation
from unstuck.rules.rule import Rule
from unstuck.rules.words import place
from unstuck.text import count, spot

MAX_WAYS = 3  # out of a loop that are named


def decide(case: Case) -> Iterable[Finding]:
    found = separation(case, "left")
    if found is None:
        return
    branch, last = found.branch, found.missing.last_seen
    yield RULE.finding(
        severity="error",
        confidence=found.confidence,
        title=f"rank {found.missing.rank} {_how(found)}, and {found.who_waits} for it in {found.call}",
        evidence=(
            f"rank {found.missing.rank} made {count(found.missing.flight.step, 'step')}, "
            f"rank {found.waiting[0].rank} {count(found.waiting[0].flight.step, 'step')}",
            *found.roll_call,
            f"its last collective was at {place(last)}" if last is not None and not found.missing.alive else "",
            f"it left by the `if` at {place(branch)}" if branch is not None else _ways_out(found),
        ),
        where=found.where(branch),
        fix="Let every rank train until all end together: give each of them data, or start fewer ranks.",
        seen_by=found.seen_by if found.missing.alive else "exit",
        also=found.also(),
    )


def _how(found: Separation) -> str:
    missing = found.missing
    if missing.alive and not all(frame.leaves for frame in missing.frames):
        return f"has left its training loop (it is at {missing.place})"
    if missing.alive:
        return f"is on its way out (it returns after {missing.place})"
    if missing.call is not None:
        return f"was on its way out (its last call is at {missing.place})"
    if missing.error and missing.error != "SystemExit":
        return f"died of {missing.error}"
    if not missing.flight.ended:
        return "was killed"
    by_itself = missing.died is None and all(left.pid != missing.flight.pid for left in found.case.left_by_exit)
    return "has ended with exit code 0" if by_itself else "has ended"


def _ways_out(found: Separation) -> str:
    """The statements by which it can have left the loops around its steps, or around its last collective."""
    last = found.missing.frame or found.missing.last_seen
    frames = loops_around(found.case, found.missing) if last is not None else []
    loops = [loop for f in frames for loop in f.loops if last and (f.file, f.function) == (last.file, last.function)]
    ways = {way.line: way for loop in loops for way in loop.exits if way.kind in ("break", "return")}
    if last is None or not 0 < len(ways) <= MAX_WAYS:
        return ""
    each = (f"the {way.kind} at {spot(last.file, line)}{_condition(way)}" for line, way in sorted(ways.items()))
    return f"its training loop can be left by {' or '.join(each)}"


def _condition(way: WayOut) -> str:
    guard = way.guards[-1] if way.guards else None
    return f" (`{guard.text}`)" if guard is not None and guard.wanted else ""


RULE = Rule(
    "rank-exited-early",
    "ranks",
    decide,
    explains=frozenset(
        ("waits-on-rank", "progress-unknown", "waits-on-io", "waits-for-nobody", "uncaught-exception", "native-crash")
    ),
    disproved_by_end=True,
)
