"""A counter of calm checks in a row that noise sets back again and again, on a plateau of the loss.

It rests on chance: the counter was low whenever it was read, and what it counts scatters far above its tolerance.
"""

from __future__ import annotations

from math import isfinite
from statistics import fmean, pstdev

from unstuck.recorder.records.learning import Loss
from unstuck.recorder.records.loops import Condition, Side
from unstuck.rules.loop.counted import checks_made, counted_by
from unstuck.rules.loop.noise import copy_of, noise_of, wait
from unstuck.rules.loop.reason import Reason
from unstuck.rules.loop.tested_values import counters, number_of, shown
from unstuck.rules.loop.training_loops import Loop
from unstuck.rules.training import curve

MIN_READINGS = 8  # of the counter, on the plateau
LOW_SHARE = 0.2  # of its bound, which none of these is above
MIN_CHECKS = 5.0  # since then, in times of the bound
MIN_CHECKS_BY_CODE = 20.0  # where the script shows that it compares with the check before
MIN_POINTS = 16  # of the loss, on the plateau
FALL = 0.5, 0.25  # of the scatter of these, and from step to step: if the later half is lower by more, it still falls
UP_TO_NOW = 0.7  # of the steps, or more, the known loss goes to
MIN_WAIT = 40.0  # checks that the bound would take at this rate, in times of the bound


def why_kept_low(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """Why a counter hardly ever reaches its bound."""
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
            return _reason(f"noise keeps `{shown(counter)}` from reaching `{shown(bound)}`", f": {often}; {why}")
    return None


def _why_reset(loop: Loop, readings: list[Loop], counter: Side, limit: float) -> str:
    counted = counted_by(loop, counter.text)
    checks = checks_made(loop, readings, counted) if counted is not None else None
    if counted is None or checks is None or checks < MIN_CHECKS * limit:
        return ""
    noise = noise_of(loop, len(readings), counted)
    if noise is None or wait(noise.met, limit) < MIN_WAIT * limit:
        return ""
    back = f"line {counted.reset.line} sets it back {'unless' if counted.wanted else 'when'} `{counted.leaf.text}`"
    since = f"the loss has not fallen since step {readings[0].step:,}, and some {checks:,.0f} such checks were made"
    return f"{back}, and {noise.text}; {since}"


def _compared_with_the_last(loop: Loop, condition: Condition, wanted: bool) -> Reason | None:
    """The script says itself that it counts what is worse than at the check before, not than the best: then fewer
    readings do, if it was checked often enough on the plateau."""
    half = loop.step / 2
    late = [each for each in (*loop.earlier, loop) if each.step >= half]
    if loop.loss is None or len(late) < 2 or not _is_flat(loop.loss, half, loop.step):
        return None
    for sides in counters(loop, condition, wanted):
        counter, bound = sides[-1]
        limit, counted = number_of(bound), counted_by(loop, counter.text)
        compared = counted.leaf.compared if counted is not None else None
        if limit is None or counted is None or compared is None or compared.apart:  # a change, up or down, is no worse
            continue
        last, checks = copy_of(loop, counted.leaf), checks_made(loop, late, counted)
        if last is not None and checks is not None and checks >= MIN_CHECKS_BY_CODE * limit:
            return _reason(
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


def _reason(short: str, more: str) -> Reason:
    fix = (
        "Compare what scatters less (the mean of many batches, or all of a fixed validation set), or compare with the "
        "best so far, or allow for the noise in the tolerance; and bound the steps as well."
    )
    return Reason(short, more, observed=True, by_chance=True, fix=fix)
