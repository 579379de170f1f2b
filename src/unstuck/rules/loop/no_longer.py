"""A counter that ends the loop and has stopped rising: what raises it waits for something that each round finds anew,
and that no longer comes, while the loop goes on and the model no longer changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from unstuck.model import Case
from unstuck.recorder.records.loops import Assignment, Condition
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.work import busy, looks_of
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.tested_values import counters, leaves, number_of, shown
from unstuck.rules.loop.training_loops import Loop, loops_of
from unstuck.rules.words import lines, seconds

MIN_RISING = 3  # readings at which it had risen each time,
MIN_STANDING = 4  # and those after them at which it is the same
TIMES = 10  # what was the longest between two readings at which it rose is passed so many times since
MIN_LOOKS = 4  # from outside, where the training passes no seam any more
MIN_STEPS = 20  # that were made until then; where no reading saw it rise, it has counted so many of them


# --- by the values ---------------------------------------------------------------------------------------------------


def why_no_longer(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """Why a counter no longer rises to its bound, though the loop goes round as ever."""
    moments = [*loop.earlier, loop]
    for sides in counters(loop, condition, wanted):
        counter, bound = sides[-1]
        values = [value for side, _ in sides if (value := number_of(side)) is not None]
        raised = _raised(loop, counter.text)
        if not raised or len(values) < len(moments) or values != sorted(values):
            continue
        first = values.index(values[-1])
        rising, standing = moments[: first + 1], moments[first:]
        rose = len(set(values)) == first + 1 >= MIN_RISING or (first == 0 and MIN_STEPS <= values[0] <= loop.step + 1)
        if not rose or len(standing) < MIN_STANDING or standing[0].step != loop.step:
            continue
        longer = _far_longer(rising, standing)
        if not longer:
            continue
        took = seconds(loop.snapshot.at - standing[0].snapshot.at)
        return Reason(
            f"`{shown(counter)}` no longer rises to `{shown(bound)}`",
            f": {_waiting(raised[0])}. Since step {loop.step:,} neither it nor the model has changed, in {took} and "
            f"{longer}",
            observed=True,
            proven=False,
            site=None if raised[0].elsewhere else (loop.frame.file, raised[0].line, loop.frame.function),
            fix=_fix(raised[0]),
        )
    return None


def _far_longer(rising: list[Loop], standing: list[Loop]) -> str:
    """In time, and in rounds of one kind, which it says. Where no reading saw it rise, that took no longer than all
    that the process had done by then."""
    usual = [now.snapshot.at - then.snapshot.at for then, now in pairwise(rising)]
    if standing[-1].snapshot.at - standing[0].snapshot.at < TIMES * max(usual, default=0.0):
        return ""
    for what, measure in MEASURES.items():
        known = [each for moment in (*rising, *standing[1:]) if (each := measure(moment)) is not None]
        if len(known) < len(rising) + len(standing) - 1 or (measure is _counted and not usual):
            continue
        before, since = known[: len(rising)], known[-1] - known[len(rising) - 1]
        longest = max((now - then for then, now in pairwise(before)), default=before[0])
        if longest and since >= TIMES * longest:
            return f"{since:,.0f} {what}; it never took more than {longest:,.0f} of these before"
    return ""


def _counted(loop: Loop) -> int | None:
    counts = loop.described.counts
    return None if counts is None or not loop.is_while else counts.least


MEASURES: dict[str, Callable[[Loop], int | None]] = {
    "backward passes": lambda loop: loop.snapshot.backwards,
    "passes over the data": lambda loop: loop.snapshot.passes,
    "rounds": _counted,
}


# --- by stacks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Skipped:
    """A loop that goes round without coming to what would end it: no seam is passed, so that its values are old."""

    loop: Loop
    still: Standstill
    statement: Assignment
    evidence: tuple[str, ...]
    fix: str


def skipped(case: Case) -> Iterator[Skipped]:
    for still in standstills(case):
        pid, flight = still.process.pid, still.flight
        last = next((each for each in reversed(case.loop_snapshots) if each.pid == pid), None)
        if last is None or flight is None or flight.step < MIN_STEPS or not busy(still) or not still.long:
            continue
        for loop in loops_of(last):
            test = loop.described.test
            ways = counters(loop, test, False) if loop.is_while and not loop.exits else ()
            raised = [each for sides in ways for each in _raised(loop, sides[-1][0].text)]
            seen = _seen(still, loop) if raised else []
            if len(seen) < MIN_LOOKS or max(seen) >= min(each.line for each in raised):
                continue
            if len(set(seen)) > 1:  # no single call in it that lasts
                found = lines((min(seen), max(seen)))
                evidence = (
                    f"`{loop.text}` ends by what line {raised[0].line} does, but {_waiting(raised[0])}",
                    f"no step was made for {still.lasting}, and {len(seen)} stack samples found it at {found} of the "
                    "loop, none at that line or after it",
                )
                yield Skipped(loop, still, raised[0], evidence, _fix(raised[0]))
                break


def _seen(still: Standstill, loop: Loop) -> list[int]:
    """The loop's own lines at which successive looks found it; empty where one found it elsewhere, or in a loop inside
    this one."""
    found: list[int] = []
    for _, thread in looks_of(still):
        here = [each for each in thread.frames if each.file == loop.frame.file and each.line is not None]
        inside = [each for each in here if loop.line <= each.line <= loop.described.last]
        if not inside or inside[-1].loop is None or inside[-1].loop[0] != loop.line:
            return []
        found.append(inside[-1].line)
    return found


# --- what it waits for -----------------------------------------------------------------------------------------------


def _raised(loop: Loop, name: str) -> list[Assignment]:
    """The statements that raise a counter; none where something else changes it, or where one waits for what builds up
    over many rounds (a buffer that is filled), or for nothing."""
    given = loop.assigned(name)
    waiting = all(each.kind == "add" and each.guards and _is_fresh(loop, each) for each in given)
    return given if waiting and loop.accounts_for(name) else []


def _is_fresh(loop: Loop, statement: Assignment) -> bool:
    pieces = [piece for guard in statement.guards for piece, _ in leaves(guard, guard.wanted)]
    return all(piece.kind != "other" and _is_found_anew(loop, piece) for piece in pieces)


def _is_found_anew(loop: Loop, piece: Condition) -> bool:
    """Each round makes what it is about; only numbers may be older."""
    sides = list(piece.compared.sides()) if piece.compared is not None else []
    numbers = [side.text for side in sides if side.value.kind == "number" and "(" not in side.text]
    about = [name for name in piece.names if piece.every is None or name in piece.every.counter.text]
    fixed = [name for name in about if loop.never_changes(name) and any(name in text for text in numbers)]
    fresh = [name for name in (*about, *piece.asks) if name not in fixed]
    return bool(fresh) and all(" in " in name or _is_made_anew(loop, name) for name in fresh)


def _is_made_anew(loop: Loop, name: str) -> bool:
    given = loop.assigned(name)
    anew = any(each.kind == "other" and not (each.guards or each.elsewhere) for each in given)
    return anew and all(each.kind in ("other", "constant") for each in given)


def _waiting(statement: Assignment) -> str:
    guard = statement.guards[-1]
    text = guard.text
    for name in [name for piece, _ in leaves(guard) for name in piece.names if " in " in name]:
        text = text.replace(name, name.partition(" in ")[0])  # another function's own
    return f"`{statement.text}` (line {statement.line}) waits for `{text}` to be {str(guard.wanted).lower()}"


def _fix(statement: Assignment) -> str:
    return (
        f"Count what every round does, or bound the rounds as well: line {statement.line} alone moves the loop towards "
        "its end."
    )
