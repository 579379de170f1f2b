"""What a counter of checks in a row counts, as the loop's statements say, and how often it was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from unstuck.recorder.records.loops import Assignment, Condition
from unstuck.rules.loop.tested_values import decisive, earlier_pieces, leaves, number_of
from unstuck.rules.loop.training_loops import Loop, loops_of


@dataclass(frozen=True)
class Counted:
    """What a counter counts: `leaf` is to come out as `wanted` so many times in a row."""

    leaf: Condition
    wanted: bool
    increment: Assignment
    reset: Assignment


def counted_by(loop: Loop, name: str) -> Counted | None:
    """The one comparison by which the loop adds to the counter or sets it to a constant."""
    statements = loop.assigned(name)
    adding = [each for each in statements if each.kind == "add"]
    resets = [each for each in statements if each.kind == "constant"]
    if len(adding) != 1 or not resets or len(statements) > len(adding) + len(resets) or not loop.accounts_for(name):
        return None
    increment = adding[0]
    for leaf, wanted in deciding(increment):
        for reset in resets:
            if leaf.compared is not None and any(
                piece.text == leaf.text and way != wanted for piece, way in deciding(reset)
            ):
                return Counted(leaf, wanted, increment, reset)
    return None


def deciding(statement: Assignment) -> list[tuple[Condition, bool]]:
    """What decides alone that a statement does not run, with the value that it would need."""
    return [piece for guard in statement.guards for piece in decisive(guard, guard.wanted)]


def checks_made(loop: Loop, readings: list[Loop], counted: Counted) -> float | None:
    """How often it was checked meanwhile, or less; None where that is not known. Other conditions on its way must have
    held at each reading: a patience that waits for the end of a warm-up has not begun to count."""
    before = readings[0]
    made = None
    for guard in counted.increment.guards:
        if guard.kind == "other":
            return None
        for piece, wanted in leaves(guard, guard.wanted):
            if piece.text == counted.leaf.text:
                continue
            seen = [*earlier_pieces(loop, piece), piece][-len(readings) :]
            if piece.every is None:
                if len(seen) < len(readings) or any(each.value is not wanted for each in seen):
                    return None
            else:
                made = min(inf if made is None else made, _remainders(seen, loop.step - before.step))
    return _rounds(loop, before) if made is None else made


def _remainders(seen: Sequence[Condition], steps: int) -> float:
    """How often `step % 50 == 0` came true meanwhile."""
    counts = [number_of(each.every.counter) for each in seen if each.every is not None]
    known = [count for count in counts if count is not None]
    if len(known) < len(seen) or known != sorted(known) or seen[-1].every is None:
        return 0.0
    return min(known[-1] - known[0], steps) / seen[-1].every.rounds


def _rounds(loop: Loop, before: Loop) -> float | None:
    """Rounds of the loop meanwhile."""
    for now, then in zip(loop.described.targets, before.described.targets, strict=False):
        last, first = number_of(now), number_of(then)
        if last is not None and first is not None and now.text == then.text:
            return min(last - first, loop.step - before.step)
    if loop.is_innermost:
        return loop.step - before.step
    *_, around, _ = loops_of(loop.snapshot)
    return loop.snapshot.epochs - before.snapshot.epochs if around.key == loop.key else None
