"""starved-for-data: the training waits for its batches, and one line makes them slow.

What it sees
    A tenth of the time or more goes into waiting for the next batch, over many batches. The first batch of a pass does
    not count, nor does a single one that was long in coming, nor a loader on which no step is made while others train.
    For two seconds the stacks of those who make the batches were sampled, and the line of the script was found in which
    most of that time is spent.

Why it matters
    It does not stop, it crawls: the model stands idle while the data set sleeps, reads, decodes or computes.

Evidence
    Seconds waited, out of how many, over how many batches; the line with its share of the samples, and whether it
    sleeps, waits for a disk or a network, or computes; the processors in use; how much faster the run would be
    without that line, computed from both shares.

Fix
    Make that line cheaper: do it once and keep the result, or use a faster way. Or let (more) workers do it beside the
    training: `num_workers`, where processors are idle.

When it is wrong
    Where other processes use the machine up it is information only: the same script alone might not wait. So it is
    where a sample takes next to nothing, and only going through them one by one takes time. A data set
    whose code is all in libraries has no line of its own to name; then the place of its class is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, HotLine
from unstuck.rules.pace.measured import Waiting, machine, spot, starving, times
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

WORTH = 0.15
"""Share of the samples that a line must have to be named as the cause."""
DOES = {
    "": "it computes there",
    "running": "it computes there",
    "sleep": "it sleeps there",
    "file": "it waits for a disk there",
    "socket": "it waits for another process or the network there",
    "lock": "it waits for a lock or other threads there",
    "shared-lock": "it waits for a lock that processes share there",
    "file-lock": "it waits for a file lock there",
}


def decide(case: Case) -> Iterable[Finding]:
    waiting = starving(case)
    if waiting is None:
        return
    hot = hot_line(waiting)
    yield RULE.finding(
        severity=waiting.severity,
        confidence=0.95 if hot is not None else 0.8,
        title=_title(waiting, hot),
        evidence=tuple(_evidence(waiting, hot)),
        where=waiting.where(hot),
        fix=Fix(_fix(waiting, hot)),
        seen_by="py-spy" if hot is not None else "flight",
    )


def hot_line(waiting: Waiting) -> HotLine | None:
    hot = (waiting.strain.drawing or waiting.strain.hot) if waiting.strain is not None else None
    return hot if hot is not None and hot.share >= WORTH else None


def described(hot: HotLine, whose: str = "the stacks that make batches") -> str:
    """The line, its share and what it does, as evidence."""
    code = f" (`{hot.code[:80]}`)" if hot.code else ""
    return (
        f"{hot.share:.0%} of {hot.samples:,} samples of {whose} were at {spot(hot)} in "
        f"{hot.function}{code}; {DOES.get(hot.waiting, 'it waits there')}"
    )


def _title(waiting: Waiting, hot: HotLine | None) -> str:
    told = f"{waiting.who} waits for data {waiting.share:.0%} of the time"
    if waiting.busy_machine and waiting.strain is not None:
        return f"{told}, because other processes keep {waiting.strain.others:.1f} processors busy"
    if hot is None:
        return told
    return f"{told}; {hot.share:.0%} of {_what(waiting)} is {spot(hot)}"


def _what(waiting: Waiting) -> str:
    return "that" if draws(waiting) else "making a batch"


def draws(waiting: Waiting) -> bool:
    """What is waited for beside workers is no batch, but the sampler: it runs in the training process."""
    return waiting.strain is not None and waiting.strain.drawing is not None


def _evidence(waiting: Waiting, hot: HotLine | None) -> Iterable[str]:
    yield waiting.lost
    if hot is not None:
        yield described(hot, "the training where it waits" if draws(waiting) else "the stacks that make batches")
    if draws(waiting):
        yield "that line draws indices: a sampler runs in the training process itself, whatever num_workers is"
    by = "one worker" if waiting.workers == 1 else f"{waiting.workers} workers"
    by = by if waiting.workers else "the training process itself (num_workers=0)"
    yield (
        f"a batch is made by {by} and takes {seconds(waiting.making)}; what {waiting.who} does with it takes "
        f"{seconds(waiting.between)}"
    )
    if waiting.strain is not None:
        yield machine(waiting.strain)
    if hot is not None and not waiting.busy_machine:
        saved = hot.share * waiting.share if draws(waiting) else 0.0
        gain = 1 / max(1 - saved, 0.01) if saved else waiting.faster(waiting.making * (1 - hot.share))
        yield f"{times(gain)} as fast if {spot(hot)} took no time"


def _fix(waiting: Waiting, hot: HotLine | None) -> str:
    if waiting.busy_machine:
        return "Nothing in the script: give the run a machine, or processors, of its own."
    if waiting.at_hand:
        return BY_BATCHES
    line = spot(hot) if hot is not None else "what the data set does for each sample"
    cheaper = f"Make {line} cheaper: do it once beforehand and keep the result, or use a faster way."
    if hot is not None and hot.waiting == "sleep":
        cheaper = f"Take out the sleep at {line}, or what makes it necessary."
    if waiting.workers:
        return cheaper
    if waiting.multiplies:
        return f"{cheaper} Workers would each give the whole stream: split it by get_worker_info() first."
    wanted = better_number(waiting)
    if wanted < 1:
        return cheaper
    gain = waiting.faster(waiting.making, wanted)
    return f"{cheaper} Or let workers do it beside the training: num_workers={wanted} ({times(gain)} as fast)."


def better_number(waiting: Waiting) -> int:
    """Workers that would keep up, as far as the processors that are idle allow."""
    strain = waiting.strain
    if strain is None or waiting.multiplies:
        return 0
    needed = math.ceil(waiting.making / max(waiting.between, waiting.making / MANY))
    makers = max(1e-9, sum(f.busy for f in strain.fetchers))
    load = sum(f.cpu + f.delayed for f in strain.fetchers) / makers
    if not waiting.workers:  # the process trains too, with all its threads
        load = 0.0 if waiting.stands else min(1.0, load)
    load += waiting.helpers / makers
    if load < 0.3:  # it waits more than it computes: processors are not what it takes
        return min(needed, MANY)
    free = strain.cores - strain.others - min(1.0, waiting.between / waiting.period)
    return max(0, min(needed, int(free / load)))


BY_BATCHES = (
    "Take whole batches out of the data set instead of one sample after another: "
    "DataLoader(data, sampler=BatchSampler(RandomSampler(data), batch_size, False), batch_size=None), with a data set "
    "that takes a list of indices, as TensorDataset does."
)
MANY = 16
"""Workers, at most, that are proposed unseen."""

RULE = Rule("starved-for-data", "pace", decide, gathers=True)
