"""A counter of calm checks in a row that noise sets back again and again, on a plateau of the loss.

It rests on chance: the counter was low whenever it was read, and what it counts scatters far above its tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from statistics import fmean, median, pstdev

from unstuck.recorder.records.learning import Loss
from unstuck.recorder.records.loops import Assignment, Comparison, Condition, Side
from unstuck.rules.loop.tested_values import both_ways, decisive, earlier_pieces, leaves, number_of, parted, shown
from unstuck.rules.loop.training_loops import Loop, loops_of
from unstuck.rules.training import curve

MIN_READINGS = 8  # of the counter, on the plateau
LOW_SHARE = 0.2  # of its bound, which none of these is above
MIN_CHECKS = 5.0  # since then, in times of the bound
MIN_CHECKS_BY_CODE = 20.0  # where the script shows that it compares with the check before
MIN_POINTS = 16  # of the loss, on the plateau
FALL = 0.5, 0.25  # of the scatter of these, and from step to step: if the later half is lower by more, it still falls
UP_TO_NOW = 0.7  # of the steps, or more, the known loss goes to
FAR_ABOVE = 5.0  # times the tolerance is what is compared with it: at less a lower rate may calm it,
SHRINKS = 0.7  # as it does where this share, or less, is left of it in the later half of the readings
MIN_WAIT = 40.0  # checks that the bound would take at this rate, in times of the bound


@dataclass(frozen=True)
class Counted:
    """What a counter counts: `leaf` is to come out as `wanted` so many times in a row."""

    leaf: Condition
    wanted: bool
    increment: Assignment
    reset: Assignment


def why_kept_low(loop: Loop, condition: Condition, wanted: bool) -> tuple[str, str] | None:
    """Why a counter hardly ever reaches its bound, in short, and what there is to add."""
    readings = _on_plateau(loop)
    if readings is None:
        return _compared_with_the_last(loop, condition, wanted)
    for sides in counters(loop, condition, wanted):
        counter, bound = sides[-1]
        seen = [number_of(side) for side, _ in sides[-len(readings) :]]
        limit = number_of(bound)
        known = [value for value in seen if value is not None]
        if limit is None or len(known) < len(readings) or not 0 <= max(known) <= LOW_SHARE * limit:
            continue
        why = _why_reset(loop, readings, counter, limit)
        if why:
            often = f"it was never above {max(known):g} at {len(known)} readings"
            return f"noise keeps `{shown(counter)}` from reaching `{shown(bound)}`", f": {often}; {why}"
    return None


def counters(loop: Loop, condition: Condition, wanted: bool) -> Iterator[list[tuple[Side, Side]]]:
    """What has to rise to a bound so that the condition comes out as wanted: it and its bound, at each reading."""
    for leaf, way in decisive(condition, wanted):
        if leaf.compared is not None and leaf.compared.op[0] in "<>":
            for sides, above in zip(both_ways(loop, leaf), (">", "<"), strict=True):
                if (leaf.compared.op[0] == above) == way:
                    yield sides


def _compared_with_the_last(loop: Loop, condition: Condition, wanted: bool) -> tuple[str, str] | None:
    """The script says itself that it counts what is worse than at the check before, not than the best: then fewer
    readings do, if it was checked often enough on the plateau."""
    half = loop.step / 2
    late = [each for each in (*loop.earlier, loop) if each.step >= half]
    if loop.loss is None or len(late) < 2 or not _is_flat(loop.loss, half, loop.step):
        return None
    for sides in counters(loop, condition, wanted):
        counter, bound = sides[-1]
        limit, counted = number_of(bound), _counted(loop, counter.text)
        compared = counted.leaf.compared if counted is not None else None
        if limit is None or counted is None or compared is None or compared.apart:  # a change, up or down, is no worse
            continue
        last, checks = _copy(loop, counted.leaf), _checks(loop, late, counted)
        if last is not None and checks is not None and checks >= MIN_CHECKS_BY_CODE * limit:
            return (
                f"`{counter.text}` counts checks in a row that are worse than the one before",
                f": line {last.line} is `{last.text}`, whatever came out, so noise sets it back before it reaches "
                f"`{shown(bound)}`; the loss has not fallen since step {late[0].step:,}, and some {checks:,.0f} such "
                "checks were made",
            )
    return None


def _on_plateau(loop: Loop) -> list[Loop] | None:
    """The loop at each reading since the loss stopped falling, half of the run ago or more; None if it still falls."""
    moments = [*loop.earlier, loop]
    if loop.loss is None or len(moments) < MIN_READINGS:
        return None
    half = loop.step / 2
    first = min(len(moments) - MIN_READINGS, next(n for n, each in enumerate(moments) if each.step >= half))
    return moments[first:] if _is_flat(loop.loss, min(half, moments[first].step), loop.step) else None


def _is_flat(loss: Loss, since: float, now: int) -> bool:
    points = [(step, value) for step, value in loss.points if step >= since]
    if len(points) < MIN_POINTS or points[-1][0] < UP_TO_NOW * now or not isfinite(sum(curve(loss))):
        return False
    values = [value for _, value in points]
    middle = len(values) // 2
    scatter = max(FALL[0] * pstdev(values), FALL[1] * pstdev(loss.recent) if loss.recent else 0.0)
    return fmean(values[:middle]) - fmean(values[middle:]) <= scatter


# --- what the counter counts ---------------------------------------------------------------------------------------


def _why_reset(loop: Loop, readings: list[Loop], counter: Side, limit: float) -> str:
    counted = _counted(loop, counter.text)
    checks = _checks(loop, readings, counted) if counted is not None else None
    if counted is None or checks is None or checks < MIN_CHECKS * limit:
        return ""
    noise = _noise(loop, len(readings), counted)
    if noise is None or _wait(noise.met, limit) < MIN_WAIT * limit:
        return ""
    back = f"line {counted.reset.line} sets it back {'unless' if counted.wanted else 'when'} `{counted.leaf.text}`"
    since = f"the loss has not fallen since step {readings[0].step:,}, and some {checks:,.0f} such checks were made"
    return f"{back}, and {noise.text}; {since}"


def _counted(loop: Loop, name: str) -> Counted | None:
    """The one comparison by which the loop adds to the counter or sets it to a constant."""
    statements = loop.assigned(name)
    adding = [each for each in statements if each.kind == "add"]
    resets = [each for each in statements if each.kind == "constant"]
    if len(adding) != 1 or not resets or len(statements) > len(adding) + len(resets) or not loop.accounts_for(name):
        return None
    increment = adding[0]
    for leaf, wanted in _pieces(increment):
        for reset in resets:
            if leaf.compared is not None and any(
                piece.text == leaf.text and way != wanted for piece, way in _pieces(reset)
            ):
                return Counted(leaf, wanted, increment, reset)
    return None


def _pieces(statement: Assignment) -> list[tuple[Condition, bool]]:
    return [piece for guard in statement.guards for piece in decisive(guard, guard.wanted)]


def _checks(loop: Loop, readings: list[Loop], counted: Counted) -> float | None:
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


# --- how noisy that is ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    text: str
    met: float
    """The share of checks, by the readings, that would have come out as wanted."""


def _noise(loop: Loop, readings: int, counted: Counted) -> Noise | None:
    """None where what is compared is not known, still moves one way, or comes close to its tolerance."""
    leaf = counted.leaf
    pieces = [*earlier_pieces(loop, leaf), leaf][-readings:]
    compared = [piece.compared for piece in pieces if piece.compared is not None]
    if len(compared) < readings or any(each.op[0] not in "<>" for each in compared):
        return None
    if any(
        piece.text == leaf.text for name in leaf.names for each in loop.assigned(name) for piece, _ in _pieces(each)
    ):
        return None  # the best so far: each one that replaces it is better
    copied = _copied(loop, leaf)
    return _of_level(compared, counted) if copied is None else _of_changes(pieces, counted, copied)


def _copied(loop: Loop, leaf: Condition) -> int | None:
    """Which of the two things compared is the present one, where the other one is a copy of it from the check before:
    `last = current`."""
    return next((place for place, side in enumerate(parted(leaf)) if _copies(loop, leaf, side.text)), None)


def _copy(loop: Loop, leaf: Condition) -> Assignment | None:
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


def _wait(share: float, times: float) -> float:
    """Checks until so many in a row come out as wanted, of which this share does."""
    return (share**-times - 1) / (1 - share) if times < 100 else inf
