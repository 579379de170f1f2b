"""Iterators that a loop holds on to and that its first round uses up: the others get nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unstuck.model import Case
from unstuck.recorder.records.loops import Held
from unstuck.rules.loop.tested_values import number_of, numbers_of
from unstuck.rules.loop.training_loops import Loop, loops_of


@dataclass(frozen=True)
class UsedUp:
    """A `for` over such an iterator, and the loop around it that holds it."""

    inner: Loop
    outer: Loop
    held: Held
    rounds: int  # that the outer loop has in all, as far as known
    died_in: str  # the round that died of having got nothing; empty: none did
    step: int  # at which the training ended


def used_up(case: Case) -> Iterator[UsedUp]:
    """Each iterator once. What a later look shows to have gone on in a later round was not used up."""
    seen: set[tuple[object, ...]] = set()
    for number, snapshot in enumerate(case.loop_snapshots):
        later = [each for each in case.loop_snapshots[number + 1 :] if each.pid == snapshot.pid]
        loops = list(loops_of(snapshot))
        step = max((flight.step for flight in case.flights if flight.pid == snapshot.pid), default=snapshot.step)
        for inner in loops:
            for held in inner.described.iterates.held:
                outer = next((each for each in loops if _is_that(each, held)), None)
                key = (snapshot.pid, inner.frame.file, inner.line, held.name, held.line)
                if outer is None or key in seen or _went_on(inner, outer, [list(loops_of(each)) for each in later]):
                    continue
                died = [
                    each for rest in later if rest.when == "died" for each in loops_of(rest) if _is_that(each, held)
                ]
                moved = next((each for each in died if _moved_on(outer, each)), None)
                rounds = _rounds(outer)
                finished = case.outcome == "finished" and not case.interrupted and not outer.exits and rounds > 1
                if (moved is not None and case.outcome != "running") or finished:
                    seen.add(key)
                    yield UsedUp(inner, outer, held, rounds, _round(moved)[1] if moved is not None else "", step)


def _is_that(loop: Loop, held: Held) -> bool:
    return (loop.frame.number, loop.line) == (held.frame, held.line)


def _went_on(inner: Loop, outer: Loop, later: list[list[Loop]]) -> bool:
    """A later look finds the inner loop at work in another round of the outer one."""
    for loops in later:
        again = any((each.frame.file, each.line) == (inner.frame.file, inner.line) for each in loops)
        around = next((each for each in loops if each.key == outer.key), None)
        if again and around is not None and around.snapshot.when != "died" and _round(around) != _round(outer):
            return True
    return False


def _round(loop: Loop) -> tuple[float | None, str]:
    """Which round of the loop it is: what a `while` compares, or what a `for` assigns."""
    compared = loop.described.test.compared if loop.is_while else None
    if compared is not None:
        return number_of(compared.left), f"{compared.left.text} = {compared.left.value.text}"
    sides = [side for side in loop.described.targets if side.value.kind in ("number", "text")]
    number = number_of(sides[0]) if sides else None
    return number, ", ".join(f"{side.text} = {side.value.text}" for side in sides)


def _moved_on(then: Loop, now: Loop) -> bool:
    return bool(_round(now)[1]) and _round(now) != _round(then)


def _rounds(loop: Loop) -> int:
    """How many rounds a loop has from the first look at it on; 1 where that is not known."""
    described, (value, _) = loop.described, _round(loop)
    if described.counts is not None:
        return described.counts.most - int(value) + 1 if value is not None else 1
    if not loop.is_while:
        return described.iterates.length or 1
    return _rounds_of_while(loop)


def _rounds_of_while(loop: Loop) -> int:
    """`while epoch < 5` with nothing but `epoch += 1` in it, on every way."""
    compared = loop.described.test.compared
    if compared is None or compared.op not in ("<", "<="):
        return 1
    (value, most), given = numbers_of(compared), loop.assigned(compared.left.text)
    by_one = len(given) == 1 and given[0].text == f"{compared.left.text} += 1" and not given[0].guards
    if value is None or most is None or not by_one or loop.assigned(compared.right.text):
        return 1
    return int(most - value) + (compared.op == "<=")
