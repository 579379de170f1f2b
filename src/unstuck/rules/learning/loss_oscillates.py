"""loss-oscillates: the loss swings up and down without falling, and each update undoes the one before.

What it sees
    Consecutive updates point in opposite directions, and the loss goes up and down by a good part of its value without
    getting lower.

Why it matters
    The step is longer than the valley is wide: each one lands on the other side, as high as before. With momentum the
    swing is slower, and outlasts a lower rate.

Evidence
    The cosine between consecutive updates, how far the loss swings, where it began and where it is.

Fix
    A smaller learning rate (a third, a tenth), or less momentum; Adam if the scales of the inputs differ.

When it is wrong
    Noise of small batches also makes a loss go up and down, but its updates do not reverse. A loss that has fallen far
    and then swings around its lowest value is not reported, nor are runs with several losses (GAN, reinforcement
    learning).
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean, median

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, Loss, Optimizer
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    curve,
    described,
    first_value,
    has_learned,
    main_loss,
    number,
    peak_rate,
    setting,
    several_losses,
    swing,
    where,
)

MIN_LOSS_VALUES = 40
MIN_PAIRS = 16  # of consecutive steps that were sampled …
MIN_CLEAR_PAIRS, MIN_CLEAR_SHARE = 8, 0.75  # … or so few, where so many of them point back
MAX_COSINE = -0.2  # median between their updates: noise of batches gives about 0
MIN_SWING = 0.15  # standard deviation of the loss, compared with its level
MAX_COSINE_ALONE = -0.8  # then the loss may be as high on the other side, and not swing at all


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        loss = main_loss(learning)
        if loss is None or loss.count < MIN_LOSS_VALUES or not learning.optimizers or several_losses(learning):
            continue
        optimizer = learning.optimizers[0]
        if not _enough(optimizer.cosines) or has_learned(learning, loss) or not _not_falling(loss):
            continue
        cosine, swings = median(optimizer.cosines), min(swing(loss.recent), swing(loss.first))
        if (cosine < MAX_COSINE and swings > MIN_SWING) or cosine < MAX_COSINE_ALONE:
            yield _finding(learning, optimizer, loss, cosine, swings)


def _enough(cosines: list[float]) -> bool:
    """A busy machine, or a short run of quick steps, leaves time for few pairs only."""
    back = sum(cosine < MAX_COSINE for cosine in cosines)
    return len(cosines) >= (MIN_CLEAR_PAIRS if back >= MIN_CLEAR_SHARE * len(cosines) else MIN_PAIRS)


def _not_falling(loss: Loss) -> bool:
    values = curve(loss)
    half = len(values) // 2
    return half >= 8 and fmean(values[half:]) > 0.9 * fmean(values[half // 2 : half])


def _finding(learning: Learning, optimizer: Optimizer, loss: Loss, cosine: float, swings: float) -> Finding:
    momentum, lower = setting(optimizer, "momentum"), f"{peak_rate(optimizer) / 10:.1g}" if optimizer.lrs else ""
    less = f", and momentum 0.9 instead of {momentum:g}" if momentum > 0.9 else ""
    return RULE.finding(
        severity="warning",
        confidence=0.8,
        title="The loss swings without falling: each update undoes the one before",
        evidence=(
            f"cosine between consecutive updates: {cosine:.2f} (median of {len(optimizer.cosines)}; 1 is the same "
            f"direction, −1 straight back); {described(optimizer)}",
            f"the loss swings by {swings:.0%}: between {number(min(loss.recent))} and {number(max(loss.recent))} in "
            f"the last {len(loss.recent)} steps, {number(first_value(loss))} at first",
        ),
        where=where(learning, optimizer.site or loss.site),
        fix=Fix(
            f"Try a learning rate {f'of {lower}' if lower else 'ten times lower'}{less}.",
            setting="learning rate",
            value=lower,
        ),
    )


RULE = Rule("loss-oscillates", "learning", decide, gathers=True)
