"""Iterators that a loop holds on to and that its first round uses up: the others get nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unstuck.model import Case
from unstuck.recorder.records.loops import Held
from unstuck.rules.hang.standstill import standstills
from unstuck.rules.hang.work import busy, looks_of
from unstuck.rules.loop.tested_values import number_of, numbers_of
from unstuck.rules.loop.training_loops import Loop, loops_of
from unstuck.rules.words import seconds

MIN_LOOKS = 3  # from outside, at a training that makes no step any more


@dataclass(frozen=True)
class UsedUp:
    """A `for` over such an iterator, and the loop around it that holds it."""

    inner: Loop
    outer: Loop
    held: Held
    rounds: int  # that the outer loop has in all, as far as known
    step: int  # at which the training ended
    shown: str = ""  # what was seen of a round that got nothing


def used_up(case: Case) -> Iterator[UsedUp]:
    """Each iterator once, as soon as a later round has come."""
    seen: set[tuple[object, ...]] = set()
    for inner, outer, held, later in _candidates(case):
        key = (inner.snapshot.pid, inner.frame.file, inner.line, held.name, held.line)
        if key in seen or _went_on(inner, outer, later):
            continue
        whole = not inner.exits  # nothing leaves it before the last element
        shown = (whole and _died_in(case, inner, outer, later)) or _spins(case, inner, outer)
        rounds = _rounds(inner, outer)
        if shown or (whole and case.outcome == "finished" and not case.interrupted and not outer.exits and rounds > 1):
            seen.add(key)
            pid, step = inner.snapshot.pid, inner.step
            step = max((flight.step for flight in case.flights if flight.pid == pid), default=step)
            yield UsedUp(inner, outer, held, rounds, step, shown)


def _candidates(case: Case) -> Iterator[tuple[Loop, Loop, Held, list[list[Loop]]]]:
    """Each `for` over such an iterator with the loop that holds it, and all loops at later moments."""
    for number, snapshot in enumerate(case.loop_snapshots):
        loops = list(loops_of(snapshot))
        holding = [(inner, held) for inner in loops for held in inner.described.iterates.held]
        rest = case.loop_snapshots[number + 1 :] if holding else ()
        later = [list(loops_of(each)) for each in rest if each.pid == snapshot.pid]
        for inner, held in holding:
            for outer in loops:
                if (outer.frame.number, outer.line) == (held.frame, held.line):
                    yield inner, outer, held, later


def _went_on(inner: Loop, outer: Loop, later: list[list[Loop]]) -> bool:
    """A later look finds the inner loop at work in another round of the outer one."""
    for loops in later:
        again = any((each.frame.file, each.line) == (inner.frame.file, inner.line) for each in loops)
        around = next((each for each in loops if each.key == outer.key), None)
        if again and around is not None and around.snapshot.when != "died" and _moved_on(inner, outer, around):
            return True
    return False


def _died_in(case: Case, inner: Loop, outer: Loop, later: list[list[Loop]]) -> str:
    """The run died in a later round."""
    died = [each for loops in later for each in loops if each.key == outer.key and each.snapshot.when == "died"]
    for now in died if case.outcome != "running" else ():
        if _moved_on(inner, outer, now):
            return f"with {_round(inner, now)} it got nothing, and died"
    return ""


def _spins(case: Case, inner: Loop, outer: Loop) -> str:
    """No step is made any more, and looks from outside find that the outer loop has begun another round."""
    same = inner.frame.number == outer.frame.number
    for still in standstills(case):
        if still.process.pid != inner.snapshot.pid or not busy(still):
            continue
        innermost = [thread.frames[0] for _, thread in looks_of(still) if thread.frames]
        lines = [frame.line or 0 for frame in innermost if frame.file == outer.frame.file]
        begun = [line for line in lines if outer.line <= line < (inner.line if same else outer.line + 1)]
        if inner.exits and (not same or any(_inside(inner, line) for line in lines) or len(lines) < len(innermost)):
            continue  # what is left early may have more to give
        if begun and len(innermost) >= MIN_LOOKS:
            return (
                f"since then {len(begun)} of {len(innermost)} looks in {seconds(still.stall.standing)} found it at "
                f"line {begun[-1]}, in a new round"
            )
    return ""


def _inside(loop: Loop, line: int) -> bool:
    return loop.described.header < line <= loop.described.last


# --- rounds ----------------------------------------------------------------------------------------------------------


def _round(inner: Loop, outer: Loop) -> str:
    """Which round of the outer loop it is, by what a `for` assigns, or what a `while` counts; empty: not known."""
    compared = outer.described.test.compared if outer.is_while else None
    if compared is not None:
        counted = _counts(inner, outer, compared.left.text)
        return f"{compared.left.text} = {compared.left.value.text}" if counted else ""
    sides = [side for side in outer.described.targets if side.value.kind in ("number", "text")]
    return ", ".join(f"{side.text} = {side.value.text}" for side in sides)


def _counts(inner: Loop, outer: Loop, name: str) -> bool:
    """Nothing but `name += 1`, once in each round of the outer loop."""
    given = outer.assigned(name)
    by_one = len(given) == 1 and given[0].text == f"{name} += 1" and not given[0].guards
    return by_one and not (inner.frame.number == outer.frame.number and _inside(inner, given[0].line))


def _moved_on(inner: Loop, then: Loop, now: Loop) -> bool:
    return bool(_round(inner, now)) and _round(inner, now) != _round(inner, then)


def _rounds(inner: Loop, outer: Loop) -> int:
    """How many rounds a loop has from the first look at it on; 1 where that is not known."""
    described = outer.described
    if described.counts is not None and described.kind == "for":
        values = [number_of(side) for side in described.targets if side.text == described.counts.name]
        return described.counts.most - int(values[0]) + 1 if values and values[0] is not None else 1
    if not outer.is_while:
        return described.iterates.length or 1
    compared = described.test.compared
    if compared is None or compared.op not in ("<", "<=") or not _counts(inner, outer, compared.left.text):
        return 1
    value, most = numbers_of(compared)
    if value is None or most is None or outer.assigned(compared.right.text):
        return 1
    return int(most - value) + (compared.op == "<=")
