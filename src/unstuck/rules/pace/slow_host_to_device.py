"""slow-host-to-device: batches are copied to the GPU out of memory that is not pinned, and that takes its time.

What it sees
    A training on a GPU whose loader does not pin its batches, and a tenth of the time of a step or more that copying a
    batch takes longer than out of pinned memory.

Why training stops
    It crawls: a copy out of ordinary memory goes through a small buffer of the driver's, and neither the training
    process nor the GPU does anything else meanwhile.

Evidence
    A piece of three batches, copied to the GPU on a stream of its own, out of the batch's own memory and out of pinned
    memory; the size of a batch; the time of a step. It is information: what the training's own copy waits for beside
    the copying is the work before it on the GPU, and telling the two apart would stop the training.

Fix
    `pin_memory=True` on the loader, and `.to(device, non_blocking=True)`.

When it is wrong
    Where the script pins batches itself after it got them. Where the training waits for data as well nothing is said,
    nor where pinning would take as long as a step, or there are no workers: then pinning is no gain. A batch that
    no layer on the GPU is given, a GPU that is nearly full, trainings on a CPU, small batches and pinned ones: there
    nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.death.sizes import size
from unstuck.rules.loop.loaders import Told, told
from unstuck.rules.pace.measured import COSTLY, times
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

WAITS = 0.05
"""Share of the time that may be waited for data."""
KEEPS_UP = 0.7
"""Of the time of a step: what pinning a batch may take."""


def decide(case: Case) -> Iterable[Finding]:
    costs = [(_share(about.fact.data), about) for about in told(case, "copies") if _would_help(about)]
    share, about = max(costs, key=lambda each: each[0], default=(0.0, None))
    if about is None or share < COSTLY:
        return
    ordinary, pinned, period = about["ordinary"], about["pinned"], about["period"]
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="info",
        confidence=0.7,
        title=f"batches are not pinned: copying them to the GPU takes {seconds(ordinary)} instead of "
        f"{seconds(pinned)}, {share:.0%} of a step",
        evidence=(
            f"a batch of {size(about['bytes'])} takes {seconds(ordinary)} to the GPU as it is, {seconds(pinned)} out "
            f"of pinned memory ({_rate(about['bytes'], ordinary)} and {_rate(about['bytes'], pinned)}, measured on a "
            "piece of three batches)",
            f"from batch to batch it takes {seconds(period)}",
            f"up to {times(period / max(1e-9, period - ordinary + pinned))} as fast with pinned batches",
        ),
        where=about.where(),
        fix=Fix("Give that DataLoader pin_memory=True, and copy with .to(device, non_blocking=True)."),
        seen_by="flight",
    )


def _would_help(about: Told) -> bool:
    """Batches are pinned by a thread beside the training, where there are workers: it must keep up."""
    if not (about["moved"] and about["trains"] and about["workers"]) or about["waits"] >= WAITS:
        return False
    return bool(about["pinning"] < KEEPS_UP * about["period"])


def _share(copies: dict[str, float]) -> float:
    """Of a step: what copying takes longer than it need."""
    return min(1.0, (copies["ordinary"] - copies["pinned"]) / max(1e-9, copies["period"]))


def _rate(number: float, took: float) -> str:
    return f"{number / max(1e-9, took) / 1e9:.1f} GB/s"


RULE = Rule("slow-host-to-device", "pace", decide)
