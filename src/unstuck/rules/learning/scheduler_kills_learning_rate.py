"""scheduler-kills-learning-rate: the schedule brings the rate to nearly nothing, or up and down, long before the end.

What it sees
    The learning rate falls below a thousandth of its highest value while most of the run is still to come: a schedule
    meant for epochs that is stepped at every batch, a plateau watcher that looks the wrong way, a decay that is too
    strong. Or a cosine that was to fall once goes up and down many times.

Why it matters
    From there on the steps change nothing. The loss stays where it was at that moment, though gradients still come.

Evidence
    The rate at the beginning, the step at which it was gone, how many steps came after it; how often the schedule was
    stepped in a training step; the loss then and at the end.

Fix
    Step the schedule where it was meant to be stepped (once an epoch), or give it its length in batches.

When it is wrong
    The end of a cosine or one-cycle schedule has small rates on purpose: it is reported only where a third of the run
    and more was trained with next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Scheduler
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import main_loss, where
from unstuck.rules.rule import Rule

GONE = 0.9e-3
"""Of the highest rate: three steps of a factor of 10 are usual."""
SHARE = 0.35
"""Of the run that must have been trained without a rate."""
STEPS = 40
"""… and at least so many of its steps."""
CYCLES = 4
"""Times down and up again of a cosine that was to fall once."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or not learning.schedulers or loss.nonfinite:
            continue
        for optimizer in learning.optimizers:
            gone = _gone(learning, optimizer)
            if gone is not None and _left_standing(loss, gone):
                yield _killed(learning, optimizer, loss, gone)
                break
        else:
            yield from _cycles(learning, loss)


def _gone(learning: Learning, optimizer: Optimizer) -> int | None:
    """The step from which the rate stayed below a thousandth of its highest, if that was long before now."""
    highest = max((rate for _, rate in optimizer.lrs), default=0.0)
    gone = None
    for step, rate in optimizer.lrs:
        if rate >= GONE * highest:
            gone = None
        elif gone is None:
            gone = step
    if gone is None or learning.steps - gone < max(STEPS, SHARE * learning.steps):
        return None
    return gone


def _left_standing(loss: Loss, gone: int) -> bool:
    """After it the loss fell no more; and it had not been near 0 already."""
    after = [value for step, value in loss.points if step >= gone]
    if len(after) < 6:
        return False
    third = len(after) // 3
    moved = abs(fmean(after[:third]) - fmean(after[-third:]))
    return moved < 0.1 * abs(fmean(after)) + 1e-12 and fmean(after) > 0.05 * abs(curves.first(loss))


def _killed(learning: Learning, optimizer: Optimizer, loss: Loss, gone: int) -> Finding:
    scheduler = _of(learning)
    highest = max(rate for _, rate in optimizer.lrs)
    reached = next(rate for step, rate in optimizer.lrs if step == gone)
    after = [value for step, value in loss.points if step >= gone]
    every = _every_batch(scheduler)
    how = f"; it was stepped {scheduler.steps:,} times in {learning.steps:,} training steps" if scheduler.steps else ""
    title = f"The learning rate was gone at step {gone:,} of {learning.steps:,}: {scheduler.kind} "
    title += "is stepped at every batch" if every else "lets it fall too fast"
    return RULE.finding(
        severity="error",
        confidence=0.93 if every else 0.85,
        title=title,
        evidence=(
            f"the rate fell from {highest:g} to {reached:.1e} by step {gone:,} and is {optimizer.lrs[-1][1]:.1e} now; "
            f"{learning.steps - gone:,} of {learning.steps:,} steps were trained with next to nothing",
            f"{scheduler.kind}({_settings(scheduler)}){how}",
            f"the loss went from {curves.number(curves.first(loss))} to {curves.number(after[0])} by then, and is "
            f"{curves.number(curves.ended(loss))} now",
        ),
        where=where(learning, scheduler.site),
        fix=Fix(_fix(scheduler, every)),
        seen_by="flight",
    )


def _fix(scheduler: Scheduler, every: bool) -> str:
    if scheduler.kind == "ReduceLROnPlateau":
        mode = scheduler.settings.get("mode")
        return (
            f'Give it what it watches: mode="{mode}" expects a value that {"rises" if mode == "max" else "falls"} '
            "(a loss needs `min`), handed over once an epoch as the mean of the epoch."
        )
    if every:
        return (
            "Move `.step()` of the schedule out of the loop over batches, to the end of the epoch, or give it its "
            "length in batches."
        )
    return "Let it fall more slowly: a factor nearer to 1, or larger steps between."


def _every_batch(scheduler: Scheduler) -> bool:
    return scheduler.steps > 0 and scheduler.per_batch >= 0.8 * scheduler.steps


def _of(learning: Learning) -> Scheduler:
    """The one stepped most often."""
    return max(learning.schedulers, key=lambda each: each.steps)


def _settings(scheduler: Scheduler) -> str:
    return ", ".join(f"{name}={value}" for name, value in scheduler.settings.items())


def _cycles(learning: Learning, loss: Loss) -> Iterable[Finding]:
    """A cosine that was to fall once, stepped far past its end: it comes up again and again."""
    scheduler = _of(learning)
    length = scheduler.settings.get("T_max")
    if (
        scheduler.kind != "CosineAnnealingLR"
        or not isinstance(length, int)
        or length < 1
        or not _every_batch(scheduler)
    ):
        return
    falls = scheduler.steps / (2 * length)
    if falls < CYCLES:
        return
    yield RULE.finding(
        severity="warning" if curves.ended(loss) > 0.3 * curves.first(loss) else "info",
        confidence=0.85,
        title=f"The cosine schedule is stepped at every batch and swings: {falls:.0f} times down and up again",
        evidence=(
            f"CosineAnnealingLR({_settings(scheduler)}) falls once in {length} of its steps; it was stepped "
            f"{scheduler.steps:,} times in {learning.steps:,} training steps",
            f"the loss went from {curves.number(curves.first(loss))} to {curves.number(curves.ended(loss))}",
        ),
        where=where(learning, scheduler.site),
        fix=Fix(
            "Step it once an epoch, or set T_max to the number of batches of the whole run; for restarts on purpose "
            "there is CosineAnnealingWarmRestarts."
        ),
        seen_by="flight",
    )


RULE = Rule(
    "scheduler-kills-learning-rate",
    "learning",
    decide,
    explains=frozenset(("learning-rate-too-low", "no-better-than-constant", "still-improving")),
    gathers=True,
)
