"""loss-spike: single batches throw the loss far up, and the same samples are in them each time.

What it sees
    After the first hundred values, a loss more than three times its usual level and twelve mean deviations above it;
    and what sets these batches apart: a sample that is in all of them, or rows far larger than the others.

Why it matters
    Each spike is one large update in the direction of a few bad samples: it undoes what many good ones taught.

Evidence
    The steps and values, the usual level, the samples these batches have in common, or the rows that stand out.

Fix
    Look at these samples: a wrong unit, a broken file, a wrong label. Remove or clip them, or clip the gradient.

When it is wrong
    Heavy tails are real in some data. Spikes that nothing in the batch explains are not reported, nor are samples that
    batches of a small dataset share by chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import LargeRows, Spike
from unstuck.rules.numerics.nan_causes import listed
from unstuck.rules.rule import Rule
from unstuck.rules.training import where

MAX_SHARED_BY_CHANCE = 0.02  # expected samples in common if none were special
MAX_COMMON = 3  # samples in common: more of them say nothing
MIN_EXPLAINED_SHARE = 0.75  # of the spikes, and two at least


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for site in dict.fromkeys(spike.site for spike in learning.spikes):
            spikes = [spike for spike in learning.spikes if spike.site == site]
            common, rows = _common_samples(spikes), _large_rows(spikes)
            if common or rows:
                yield _finding(learning, site, spikes, common, rows)


def _common_samples(spikes: list[Spike]) -> list[int]:
    """Samples that are in nearly all batches that spiked."""
    batches = [set(spike.indices) for spike in spikes if spike.indices]
    if len(batches) < 2:
        return []
    often = max(2, math.ceil(MIN_EXPLAINED_SHARE * len(batches)))
    counts = Counter(sample for batch in batches for sample in batch)
    common = [sample for sample, count in counts.items() if count >= often]
    by_chance = _expected_by_chance(batches, often) >= MAX_SHARED_BY_CHANCE
    return sorted(common) if len(common) <= MAX_COMMON and not by_chance else []


def _expected_by_chance(batches: list[set[int]], often: int) -> float:
    """Samples that so many batches would share though none is special: a small dataset comes round again."""
    dataset = 1 + max(max(batch) for batch in batches)
    share = max(len(batch) for batch in batches) / dataset
    return dataset * math.comb(len(batches), often) * share**often


def _large_rows(spikes: list[Spike]) -> list[tuple[Spike, LargeRows]]:
    """Rows far larger than the others, in nearly every spike that was looked at.

    Only of batches from a loader: what a training makes itself (rewards, noise) has rare large values by nature."""
    large = [(spike, spike.rows[0]) for spike in spikes if spike.rows and _samples(spike, spike.rows[0])]
    looked_at = [spike for spike in spikes if spike.rows is not None]
    return large if len(large) >= max(2, MIN_EXPLAINED_SHARE * len(looked_at)) else []


def _samples(spike: Spike, large: LargeRows) -> list[int]:
    indices = spike.indices or []
    return [indices[row] for row in large.rows if row < len(indices)] if len(indices) == large.shape[0] else []


def _finding(
    learning: Learning,
    site: Site | None,
    spikes: list[Spike],
    common: list[int],
    rows: list[tuple[Spike, LargeRows]],
) -> Finding:
    worst = max(spikes, key=lambda spike: spike.value / max(abs(spike.usual), 1e-12))
    times = worst.value / worst.usual if worst.usual > 0 else 0.0
    samples = common or sorted({sample for spike, row in rows for sample in _samples(spike, row)})
    values = ", ".join(f"{spike.value:.4g} at step {spike.step:,}" for spike in spikes[:5])
    return RULE.finding(
        severity="warning",
        confidence=0.85 if common and rows else 0.75,
        title=f"The loss spikes {len(spikes)} time{'s' * (len(spikes) != 1)}, up to {times:,.0f}-fold: sample "
        f"{listed(samples[:6], len(samples))}",
        evidence=(
            f"loss of {values}; its usual level is {spikes[0].usual:.4g} ± {spikes[0].spread:.2g}",
            f"sample {listed(common)} is in the batches that spiked" if common else "",
            *(
                f"step {spike.step:,}: row {listed(row.rows)} (sample {listed(_samples(spike, row))}) of `{row.name}` "
                f"reaches {row.largest:.4g}; rows of this batch usually reach {row.usual:.4g}"
                for spike, row in rows[:3]
            ),
        ),
        where=where(learning, site, step=worst.step, sample=samples[0]),
        fix=Fix(
            "Look at these samples (unit, file, label), and drop or clip them; or clip the gradient.",
            setting="clipping",
            value="1.0",
        ),
    )


RULE = Rule("loss-spike", "numerics", decide, gathers=True)
