"""loss-spike: single batches throw the loss far up, and it is the same samples each time.

What it sees
    After the first hundred values, a loss more than three times its usual level and twelve mean deviations above it;
    and what sets these batches apart: a sample that is in all of them, or rows far larger than the others.

Why it matters
    Each spike is one large update in the direction of a few bad samples: it undoes what many good ones taught.

Evidence
    The steps and values, the usual level, the samples that these batches have in common, or the rows that stand out.

Fix
    Look at these samples: a wrong unit, a broken file, a wrong label. Remove or clip them, or clip the gradient.

When it is wrong
    Heavy tails are real in some data. Spikes that nothing in the batch explains are not reported, nor samples that
    batches of a small data set share by chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.base import Site
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import LargeRows, Spike
from unstuck.rules.learning.measured import where
from unstuck.rules.numerics.broken import listed
from unstuck.rules.rule import Rule

CHANCE = 0.02
"""Samples shared by chance, from which on a shared one means nothing."""
COMMON = 3
"""Samples that all the batches may share before it is no longer them."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for site in dict.fromkeys(spike.site for spike in learning.spikes):
            spikes = [spike for spike in learning.spikes if spike.site == site]
            samples, rows = _common(spikes), _rows(spikes)
            if samples or rows:
                yield _finding(learning, site, spikes, samples, rows)


def _common(spikes: list[Spike]) -> list[int]:
    """Samples that are in nearly all batches that spiked, in two at least."""
    batches = [set(spike.indices) for spike in spikes if spike.indices]
    if len(batches) < 2:
        return []
    counts = Counter(sample for batch in batches for sample in batch)
    often = max(2, math.ceil(0.75 * len(batches)))
    most = [sample for sample, count in counts.items() if count >= often]
    return sorted(most) if len(most) <= COMMON and _by_chance(batches, often) < CHANCE else []


def _by_chance(batches: list[set[int]], often: int) -> float:
    """Samples that so many batches would share though none of them is special: small data sets come round again."""
    known = 1 + max(max(batch) for batch in batches)
    share = max(len(batch) for batch in batches) / known
    return known * math.comb(len(batches), often) * share**often


def _rows(spikes: list[Spike]) -> list[tuple[Spike, LargeRows]]:
    """Of nearly every one that was looked at, and of two at least: rows far larger than the others, of batches out of a
    loader.

    What a training makes itself (rewards, noise) has rare large values by nature."""
    found = [(spike, spike.rows[0]) for spike in spikes if spike.rows]
    found = [(spike, row) for spike, row in found if _samples_of(spike, row)]
    looked = [spike for spike in spikes if spike.rows is not None]
    return found if len(found) >= max(2, 0.75 * len(looked)) else []


def _finding(
    learning: Learning,
    site: Site | None,
    spikes: list[Spike],
    samples: list[int],
    rows: list[tuple[Spike, LargeRows]],
) -> Finding:
    worst = max(spikes, key=lambda spike: spike.value / max(abs(spike.usual), 1e-12))
    times = worst.value / worst.usual if worst.usual > 0 else 0.0
    named = samples or sorted({sample for spike, row in rows for sample in _samples_of(spike, row)})
    culprit = f"sample {listed(named[:6], len(named))}" if named else f"rows of `{rows[0][1].name}`"
    return RULE.finding(
        severity="warning",
        confidence=0.85 if samples and rows else 0.75,
        title=f"The loss spikes {len(spikes)} time{'s' * (len(spikes) != 1)}, up to {times:,.0f}-fold: {culprit}",
        evidence=tuple(_evidence(spikes, samples, rows)),
        where=where(learning, site, step=worst.step, sample=named[0] if named else None),
        fix=Fix("Look at these samples (unit, file, label), and drop or clip them; or clip the gradient."),
        seen_by="flight",
    )


def _evidence(spikes: list[Spike], samples: list[int], rows: list[tuple[Spike, LargeRows]]) -> Iterable[str]:
    first = ", ".join(f"{spike.value:.4g} at step {spike.step:,}" for spike in spikes[:5])
    yield f"loss of {first}; usual level {spikes[0].usual:.4g} ± {spikes[0].spread:.2g}"
    if samples:
        yield f"sample {listed(samples)} is in the batches that spiked"
    for spike, row in rows[:3]:
        named = _samples_of(spike, row)
        which = f" (sample {listed(named)})" if named else ""
        yield (
            f"step {spike.step:,}: row {listed(row.rows)}{which} of `{row.name}` reaches {row.largest:.4g}, where the "
            f"rows of the batch usually reach {row.usual:.4g}"
        )


def _samples_of(spike: Spike, large: LargeRows) -> list[int]:
    indices = spike.indices or []
    return [indices[row] for row in large.rows if row < len(indices)] if len(indices) == large.shape[0] else []


RULE = Rule("loss-spike", "numerics", decide, gathers=True)
