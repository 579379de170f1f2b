"""scheduler-kills-learning-rate: the scheduler brings the learning rate near 0, or up and down, long before the end.

What it sees
    The learning rate falls below a thousandth of its peak while most of the run is still to come: a scheduler meant for
    epochs that steps at every batch, a ReduceLROnPlateau with the wrong mode, a decay that is too strong, also one that
    the script computes itself. Or a cosine that should fall once goes up and down many times, or a warm-up of the
    script's own starts over in each epoch and the loss does not fall. Or the function of a LambdaLR returns the rate
    itself, not a factor for it: the two are multiplied, no rate of the run is large enough, and nothing is learned.

Why it matters
    From then on the steps change nothing. The loss stays where it was at that moment, though gradients still come.

Evidence
    The peak rate, the step at which it was gone, how many steps came after it; how often the scheduler stepped per
    training step; the loss then and at the end.

Fix
    Step the scheduler where it is meant to be stepped (once an epoch), or set its length in batches.

When it is wrong
    The end of a cosine or one-cycle schedule has small rates on purpose: it is reported only where a third of the run
    or more trained at next to nothing. So is a ReduceLROnPlateau whose loss had come to rest when it began to cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Scheduler
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    course,
    end_mean,
    first_value,
    has_learned,
    highest_low_rate,
    main_loss,
    number,
    peak_rate,
    setting,
    several_losses,
    where,
)

MAX_RATE_LEFT = 0.9e-3  # of the peak: three steps of a factor of 10 are usual
MIN_RUN_SHARE = 0.35  # of the run that trained without a rate …
MIN_STEPS = 40  # … and at least so many steps
MIN_CYCLES = 4  # down and up again, of a cosine that should fall once
PER_BATCH_SHARE = 0.8  # of the scheduler's steps
MIN_RAMP, MIN_RAMP_TIMES = 8, 3.0  # steps in which a rate only rises or falls at first, and by how much
MAX_FACTOR = 0.05  # that a rate was ever multiplied with: a factor is near 1 at its highest
MIN_LOSS_VALUES = 100
MIN_BEFORE, MAX_FALL = 2, 0.25  # points of the loss, and by how much of itself it still fell before a rate that is cut
MIN_TURNS = 2  # back by half: one cycle goes up and down once


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.nonfinite:
            continue
        scheduler = max(learning.schedulers, key=lambda scheduler: scheduler.steps, default=None)
        for optimizer in learning.optimizers:
            gone = _gone_at(learning, optimizer)
            meant = scheduler is not None and _on_its_plateau(scheduler, optimizer, loss)
            if gone is not None and _loss_stopped(loss, gone) and not meant:
                yield _killed(learning, optimizer, scheduler, loss, gone)
                break
        else:
            if scheduler is not None:
                yield from _cycles(learning, scheduler, loss)
                yield from _multiplied(learning, scheduler, loss, finished=case.outcome == "finished")
            elif not has_learned(learning, loss):
                yield from _starts_over(learning, loss)


def _gone_at(learning: Learning, optimizer: Optimizer) -> int | None:
    """The step from which on the rate stayed below a thousandth of its peak, if that was long ago."""
    gone = None
    for step, rate in optimizer.lrs:
        if rate >= MAX_RATE_LEFT * peak_rate(optimizer):
            gone = None
        elif gone is None:
            gone = step
    if gone is None or learning.steps - gone < max(MIN_STEPS, MIN_RUN_SHARE * learning.steps):
        return None
    return gone


def _loss_stopped(loss: Loss, gone: int) -> bool:
    """It fell no more after that; and it was not near 0 already."""
    after = [value for step, value in loss.points if step >= gone]
    if len(after) < 6:
        return False
    third = len(after) // 3
    moved = abs(fmean(after[:third]) - fmean(after[-third:]))
    return moved < 0.1 * abs(fmean(after)) + 1e-12 and fmean(after) > 0.05 * abs(first_value(loss))


def _on_its_plateau(scheduler: Scheduler, optimizer: Optimizer, loss: Loss) -> bool:
    """A ReduceLROnPlateau that watches a loss lowered the rate where that had come to rest: as it should."""
    cut = next((step for step, rate in optimizer.lrs if rate < peak_rate(optimizer)), None)
    watches = scheduler.kind == "ReduceLROnPlateau" and scheduler.settings.get("mode") == "min"
    if not watches or cut is None or _every_batch(scheduler):
        return False
    before = [value for step, value in loss.points if cut / 2 <= step <= cut]
    half = len(before) // 2
    fell = fmean(before[:half]) - fmean(before[half:]) if half >= MIN_BEFORE else float("inf")
    return fell < MAX_FALL * fmean(before[half:]) and fmean(before) < first_value(loss) / 2


def _every_batch(scheduler: Scheduler | None) -> bool:
    return scheduler is not None and scheduler.steps > 0 and scheduler.per_batch >= PER_BATCH_SHARE * scheduler.steps


def _killed(learning: Learning, optimizer: Optimizer, scheduler: Scheduler | None, loss: Loss, gone: int) -> Finding:
    rate_then = next(rate for step, rate in optimizer.lrs if step == gone)
    loss_then = next(value for step, value in loss.points if step >= gone)
    every_batch = _every_batch(scheduler)
    how = "steps at every batch" if every_batch else "lets it fall too fast"
    by = scheduler.kind if scheduler is not None else "the script's own schedule"
    return RULE.finding(
        severity="error",
        confidence=0.93 if every_batch else 0.85,
        title=f"The learning rate was gone at step {gone:,} of {learning.steps:,}: {by} {how}",
        evidence=(
            f"the rate fell from {peak_rate(optimizer):g} to {_small(rate_then)} by step {gone:,} and is "
            f"{_small(optimizer.lrs[-1][1])} now; {learning.steps - gone:,} of {learning.steps:,} steps trained at "
            "next to nothing",
            _described(scheduler) + (_stepped(scheduler, learning) if scheduler.steps else "")
            if scheduler is not None
            else f"no torch scheduler is in use: the script sets the rate itself, {len(optimizer.lrs):,} changes seen",
            f"the loss went from {number(first_value(loss))} to {number(loss_then)} by then, and is "
            f"{number(end_mean(loss))} now",
        ),
        where=where(learning, scheduler.site if scheduler is not None else optimizer.site or loss.site),
        fix=Fix(_fix(scheduler), setting="schedule" if scheduler is not None else None),
    )


def _small(rate: float) -> str:
    return f"{rate:.1e}" if rate else "0"


def _fix(scheduler: Scheduler | None) -> str:
    if scheduler is None:
        return (
            "Compute the rate from the epoch if its factor is meant for an epoch; else choose a factor nearer to 1, "
            "and print the rate now and then."
        )
    if scheduler.kind == "ReduceLROnPlateau":
        mode = scheduler.settings.get("mode")
        return (
            f'Pass it what it expects: mode="{mode}" needs a value that {"rises" if mode == "max" else "falls"} (a '
            "loss needs `min`), once an epoch, as the mean of the epoch."
        )
    if _every_batch(scheduler):
        return (
            "Move the scheduler's `.step()` out of the loop over batches, to the end of the epoch, or set its length "
            "in batches."
        )
    return "Let it fall more slowly: a factor nearer to 1, or more steps between."


def _described(scheduler: Scheduler) -> str:
    return f"{scheduler.kind}({', '.join(f'{name}={value}' for name, value in scheduler.settings.items())})"


def _stepped(scheduler: Scheduler, learning: Learning) -> str:
    return f"; it stepped {scheduler.steps:,} times in {learning.steps:,} training steps"


def _cycles(learning: Learning, scheduler: Scheduler, loss: Loss) -> Iterable[Finding]:
    """A cosine that should fall once, stepped far past its end: it comes up again and again."""
    length = scheduler.settings.get("T_max")
    if scheduler.kind != "CosineAnnealingLR" or not isinstance(length, int) or length < 1:
        return
    cycles = scheduler.steps / (2 * length)
    if cycles < MIN_CYCLES or not _every_batch(scheduler):
        return
    yield RULE.finding(
        severity="warning" if end_mean(loss) > 0.3 * first_value(loss) else "info",
        confidence=0.85,
        title=f"The cosine schedule steps at every batch and swings: {cycles:.0f} times down and up again",
        evidence=(
            f"{_described(scheduler)} falls once in {length} of its steps{_stepped(scheduler, learning)}",
            course(loss),
        ),
        where=where(learning, scheduler.site),
        fix=Fix(
            "Step it once an epoch, or set T_max to the number of batches of the whole run; for restarts on purpose "
            "there is CosineAnnealingWarmRestarts.",
            setting="schedule",
        ),
    )


def _multiplied(learning: Learning, scheduler: Scheduler, loss: Loss, *, finished: bool) -> Iterable[Finding]:
    """What a LambdaLR's function returns is multiplied with the optimizer's rate; here it is a rate itself."""
    for optimizer in learning.optimizers:
        base, peak = setting(optimizer, "initial_lr"), peak_rate(optimizer)
        low = 0 < peak <= min(highest_low_rate(optimizer), MAX_FACTOR * base)
        if scheduler.kind != "LambdaLR" or not low or not _past_its_peak(learning, optimizer, finished=finished):
            continue
        if loss.count < MIN_LOSS_VALUES or several_losses(learning) or has_learned(learning, loss):
            continue
        yield RULE.finding(
            severity="error",
            confidence=0.88,
            title=f"The learning rate is never above {peak:.2g}: LambdaLR multiplies the optimizer's {base:g} with "
            "what its function returns",
            evidence=(
                f"the optimizer was made with {base:g}, and the function returned at most {peak / base:.2g}: it "
                f"returns a rate, not a factor; {base:g} × {peak / base:.2g} = {peak:.2g} was the highest rate in "
                f"{learning.steps:,} steps",
                course(loss),
            ),
            where=where(learning, scheduler.function or scheduler.site),
            fix=Fix(
                "Return a factor that is 1 at the peak (divide by the peak rate), or make the optimizer with `lr=1.0`.",
                setting="schedule",
            ),
        )
        break


def _past_its_peak(learning: Learning, optimizer: Optimizer, *, finished: bool) -> bool:
    """It fell again, or a run that is over kept it where it was for its second half: no warm-up still goes on."""
    at, rate = optimizer.lrs[-1]
    return rate < peak_rate(optimizer) or (finished and 0 < at < learning.steps / 2)


def _starts_over(learning: Learning, loss: Loss) -> Iterable[Finding]:
    """A warm-up or decay of the script's own that counts the batches of one epoch: at each one it begins again."""
    for optimizer in learning.optimizers:
        ramp, turns = _first_ramp(optimizer), _turns([rate for _, rate in optimizer.lrs])
        if len(ramp) < MIN_RAMP or max(ramp) < MIN_RAMP_TIMES * min(ramp) or turns < MIN_TURNS:
            continue
        rates = [rate for _, rate in optimizer.lrs]
        yield RULE.finding(
            severity="error",
            confidence=0.85,
            title=f"The learning rate starts over again and again, between {min(rates):.2g} and {max(rates):.2g}",
            evidence=(
                f"over the first {len(ramp)} steps it goes from {ramp[0]:.2g} to {ramp[-1]:.2g}; in the steps sampled "
                f"it turned back {turns} times, up to step {optimizer.lrs[-1][0]:,} of {learning.steps:,}",
                f"no torch scheduler is in use: the script sets the rate itself, {len(rates):,} changes seen",
                course(loss),
            ),
            where=where(learning, optimizer.site or loss.site),
            fix="Compute the rate from a counter of all steps of the run, not from the batch number within an epoch.",
        )
        break


def _first_ramp(optimizer: Optimizer) -> list[float]:
    """The rates of its first steps, as long as they only rise or only fall."""
    ramp: list[float] = []
    for step, rate in optimizer.lrs:
        known = len(ramp) > 1
        if step != len(ramp) + optimizer.lrs[0][0] or (known and (rate > ramp[-1]) != (ramp[1] > ramp[0])):
            break
        ramp.append(rate)
    return ramp


def _turns(rates: list[float]) -> int:
    """How often it had doubled, and then went back by half."""
    turns, low, high = 0, float("inf"), 0.0  # `high`: 0 until it has doubled
    for rate in rates:
        if high:
            high = max(high, rate)
            if rate <= high / 2:
                turns, low, high = turns + 1, rate, 0.0
        else:
            low = min(low, rate)
            high = rate if rate > 2 * low else 0.0
    return turns


RULE = Rule(
    "scheduler-kills-learning-rate",
    "learning",
    decide,
    explains=frozenset(("learning-rate-too-low",)),
    gathers=True,
)
