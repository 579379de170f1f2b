"""How far a number that is compared at each check scatters, and how long it takes until so many checks in a row come
out as wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from statistics import median

from unstuck.recorder.records.loops import Assignment, Comparison, Condition, Side
from unstuck.rules.loop.counted import Counted, deciding
from unstuck.rules.loop.tested_values import earlier_pieces, number_of, parted
from unstuck.rules.loop.training_loops import Loop

FAR_ABOVE = 5.0  # times the tolerance is what is compared with it: at less a lower rate may calm it,
SHRINKS = 0.7  # as it does where this share, or less, is left of it in the later half of the readings


@dataclass(frozen=True)
class Noise:
    text: str
    met: float
    """The share of checks, by the readings, that would have come out as wanted."""


def noise_of(loop: Loop, readings: int, counted: Counted) -> Noise | None:
    """None where what is compared is not known, still moves one way, or comes close to its tolerance."""
    leaf = counted.leaf
    pieces = [*earlier_pieces(loop, leaf), leaf][-readings:]
    compared = [piece.compared for piece in pieces if piece.compared is not None]
    if len(compared) < readings or any(each.op[0] not in "<>" for each in compared):
        return None
    given = [each for name in leaf.names for each in loop.assigned(name)]
    if any(piece.text == leaf.text for each in given for piece, _ in deciding(each)):
        return None  # the best so far: each one that replaces it is better
    copied = _copied(loop, leaf)
    return _of_level(compared, counted) if copied is None else _of_changes(pieces, counted, copied)


def _copied(loop: Loop, leaf: Condition) -> int | None:
    """Which of the two things compared is the present one, where the other one is a copy of it from the check before:
    `last = current`."""
    return next((place for place, side in enumerate(parted(leaf)) if _copies(loop, leaf, side.text)), None)


def copy_of(loop: Loop, leaf: Condition) -> Assignment | None:
    """That statement, where nothing but the comparison itself decides whether it runs."""
    copies = [each for side in parted(leaf) for each in _copies(loop, leaf, side.text)]
    return copies[0] if copies and not any(each.guards for each in copies) else None


def _copies(loop: Loop, leaf: Condition, present: str) -> list[Assignment]:
    for name in leaf.names:
        given = loop.assigned(name) if name != present else []
        if given and all(each.text == f"{name} = {present}" for each in given):
            return list(given)
    return []


def _of_changes(pieces: list[Condition], counted: Counted, place: int) -> Noise | None:
    """What changes from check to check, by how it changed from reading to reading. There the two are equal, so that
    what is between the sides is the tolerance."""
    sides = [parted(piece) for piece in pieces]
    values = _finite([each[place] for each in sides])
    last = pieces[-1].compared
    if values is None or last is None:
        return None
    steps = [later - sooner for sooner, later in pairwise(values)]
    if last.difference:
        bound = number_of(last.right)
        tested = [abs(step) if last.apart else -step if place else step for step in steps]
    else:
        between = [(number_of(each[1 - place]), value) for each, value in zip(sides, values, strict=True)]
        bounds = [other - value for other, value in between if other is not None]
        bound = max(bounds, key=abs) if len(bounds) == len(values) else None
        tested = steps
    typical = median(map(abs, steps))
    if bound is None or typical < FAR_ABOVE * abs(bound) or not _goes_both_ways(steps) or _shrinks(steps):
        return None
    flipped = not last.difference and place == 1
    met = _share_met(tested, last, bound, counted.wanted, flipped)
    name, tolerance = sides[-1][place].text, f"{abs(bound):.3g}" if bound else "nothing"
    return Noise(f"`{name}` scatters by {typical:.2g}, against {tolerance} ({_shown(values)})", met)


def _of_level(compared: list[Comparison], counted: Counted) -> Noise | None:
    """What is to be below a bound at each check, by how large it was at the readings."""
    small = (compared[-1].op[0] == "<") == counted.wanted
    if compared[-1].apart or not small:
        return None
    values, bounds = _finite([each.left for each in compared]), _finite([each.right for each in compared])
    if values is None or bounds is None or len(set(bounds)) > 1 or bounds[0] <= 0:
        return None
    steps = [later - sooner for sooner, later in pairwise(values)]
    if min(values) <= bounds[0] or median(values) < FAR_ABOVE * bounds[0]:
        return None
    if not _goes_both_ways(steps) or _shrinks(values):
        return None
    met = _share_met(values, compared[-1], bounds[0], counted.wanted, flipped=False)
    name = compared[-1].left.text
    return Noise(f"`{name}` is noise of {median(values):.2g}, against {bounds[0]:.3g} ({_shown(values)})", met)


def _shown(values: list[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values[-5:])


def _finite(sides: Sequence[Side]) -> list[float] | None:
    values = [value for side in sides if (value := number_of(side)) is not None and isfinite(value)]
    return values if len(values) == len(sides) else None


def _goes_both_ways(steps: list[float]) -> bool:
    """It neither rises nor falls, and it is another one each time: a check was made in between."""
    up, down = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    return min(up, down) >= max(1, len(steps) // 4) and len(steps) - up - down <= len(steps) // 4


def _shrinks(values: list[float]) -> bool:
    sizes = [abs(value) for value in values]
    middle = len(sizes) // 2
    return median(sizes[middle:]) < SHRINKS * median(sizes[:middle])


def _share_met(values: list[float], compared: Comparison, bound: float, wanted: bool, flipped: bool) -> float:
    """Not less than what these few can tell."""
    less = (compared.op[0] == "<") != flipped
    met = sum((value < bound if less else value > bound) == wanted for value in values)
    return (met + 1) / (len(values) + 2)


def wait(share: float, times: float) -> float:
    """Checks until so many in a row come out as wanted, of which this share does."""
    return (share**-times - 1) / (1 - share) if times < 100 else inf
