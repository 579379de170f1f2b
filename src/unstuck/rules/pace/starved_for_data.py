"""starved-for-data: the training waits for its batches, and one line makes them slow.

What it sees
    A tenth of the time or more goes into waiting for the next batch, over many batches. The first batch of an epoch
    does not count, nor does a single late one, nor a loader on which no step is made while others train. For two
    seconds the stacks of the processes that make batches were sampled, to find the line of the script in which most of
    that time is spent. Without a DataLoader: half of the time or more goes into the lines of the loop that make
    the batch, or wait for a thread or process of the script that does (a queue, a future, a pool, a generator); the
    stacks of all of these were sampled.

Why it matters
    The model idles for that share of the time while the dataset sleeps, reads, decodes or computes.

Evidence
    Seconds waited, of how many, over how many batches; the line with its share of the stack samples, and whether it
    sleeps, waits for a disk or a network, or computes; the cores in use; how much faster the run would be without that
    line, computed from both shares.

Fix
    Make that line cheaper: do it once and keep the result, or use a faster way. Or let (more) workers do it while the
    model trains: `num_workers`, if there are idle cores.

When it is wrong
    If other processes use up the machine it is information only: the same script alone might not wait. So it is if a
    sample takes next to nothing, and only iterating the samples one by one takes time. A dataset whose code is all in
    libraries has no line of its own to name; then its class is named.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.rules.pace.loader_waits import (
    SHARED_MACHINE_CORES,
    LoaderWait,
    cores_text,
    line_text,
    starving,
    times,
)
from unstuck.rules.pace.own_feed import OwnFeed, own_feeds
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds
from unstuck.text import spot

MIN_OWN_SHARE_BUSY = 0.5  # of the time, where others use the machine: what computes is slower then, the model as well
BY_BATCHES = (
    "Take whole batches out of the dataset instead of one sample after another: "
    "DataLoader(data, sampler=BatchSampler(RandomSampler(data), batch_size, False), batch_size=None), with a dataset "
    "that takes a list of indices, as TensorDataset does."
)


def decide(case: Case) -> Iterable[Finding]:
    wait = starving(case)
    if wait is None:
        yield from (_by_its_own(feed) for feed in own_feeds(case)[:1] if feed.starves)
        return
    yield RULE.finding(
        severity="info" if wait.busy_machine or wait.cheap_samples else "warning",
        confidence=0.95 if wait.hot is not None else 0.8,
        title=_title(wait),
        evidence=_evidence(wait),
        where=wait.where(wait.hot),
        fix=_fix(wait),
        seen_by="py-spy" if wait.hot is not None else "flight",
    )


def _who(wait: LoaderWait) -> str:
    """A script that makes no step is no training."""
    return "the training" if wait.state.step else "the run"


def _hot_spot(wait: LoaderWait) -> str:
    return spot(wait.hot.file, wait.hot.line) if wait.hot is not None else ""


def _title(wait: LoaderWait) -> str:
    waits = f"{_who(wait)} waits for data {wait.share:.0%} of the time"
    if wait.busy_machine:
        return f"{waits}, because other processes keep {wait.strain.others:.1f} cores busy"
    if wait.hot is None:
        return waits
    what = "making a batch" if wait.strain.drawing is None else "that"
    return f"{waits}; {wait.hot.share:.0%} of {what} is spent at {_hot_spot(wait)}"


def _evidence(wait: LoaderWait) -> Iterable[str]:
    draws = wait.strain.drawing is not None
    yield wait.lost_text
    if wait.hot is not None:
        yield line_text(wait.hot, *(["the training while it waits"] if draws else []))
    if draws:
        yield "that line draws indices: a sampler runs in the training process itself, whatever num_workers is"
    maker = wait.workers_text if wait.workers else "the training process itself (num_workers=0)"
    yield (
        f"a batch is made by {maker} and takes {seconds(wait.making)}; what {_who(wait)} does with it takes "
        f"{seconds(wait.step_seconds)}"
    )
    yield cores_text(wait.strain)
    if wait.hot is not None and not wait.busy_machine:
        sampling = 1 / max(1 - wait.hot.share * wait.share, 0.01)
        gain = sampling if draws else wait.gain(wait.making * (1 - wait.hot.share))
        yield f"{times(gain)} as fast if {_hot_spot(wait)} took no time"


def _fix(wait: LoaderWait) -> str | Fix:
    if wait.busy_machine:
        return "Nothing in the script: give the run a machine, or cores, of its own."
    if wait.cheap_samples:
        return BY_BATCHES
    if wait.hot is not None and wait.hot.waiting == "sleep":
        cheaper = f"Remove the sleep at {_hot_spot(wait)}, or the reason for it."
    else:
        line = _hot_spot(wait) or "what the dataset does for each sample"
        cheaper = f"Make {line} cheaper: do it once beforehand and keep the result, or use a faster way."
    if wait.workers:
        return cheaper
    if wait.multiplies:
        return f"{cheaper} Workers would each give the whole stream: split it by get_worker_info() first."
    wanted = wait.better_workers
    if wanted < 1:
        return cheaper
    gain = times(wait.gain(wait.making, wanted))
    workers = f"Or let workers do it while the model trains: num_workers={wanted} ({gain} as fast)."
    return Fix(f"{cheaper} {workers}", setting="workers", value=str(wanted))


# --- without a loader ------------------------------------------------------------------------------------------------


def _by_its_own(feed: OwnFeed) -> Finding:
    hot, line, strain = feed.hot, feed.line, feed.strain
    at, drawn = spot(hot.file, hot.line), spot(line.file, line.line)
    waits = feed.maker != "the training itself"
    does = "waits for" if waits else "makes"
    busy = strain.others >= SHARED_MACHINE_CORES
    idle = strain.cores - strain.cpu - strain.others
    elsewhere = "" if waits else " Or make batches in a DataLoader with workers, while the model trains."
    cheaper = f"Make {at} cheaper: do it once beforehand and keep the result, or use a faster way."
    if hot.waiting == "sleep":
        cheaper = f"Remove the sleep at {at}, or the reason for it."
    if waits and idle >= 1 and hot is not line:
        cheaper += " Or let more threads or processes make batches." if feed.maker == "another process" else ""
    return RULE.finding(
        severity="info" if busy and feed.share < MIN_OWN_SHARE_BUSY else "warning",
        confidence=0.85,
        title=f"the training {does} its own batches {feed.share:.0%} of the time; {hot.share:.0%} of making them is "
        f"spent at {at}",
        evidence=(
            f"{feed.share:.0%} of {sum(stack.count for stack in strain.stacks if stack.trains):,} stack samples of the "
            f"training in {strain.seconds:.0f} s were at {drawn} or beneath it, which {does} the batch: "
            f"{seconds(feed.lost)} of {seconds(feed.seconds)}",
            line_text(hot, feed.maker),
            f"a batch takes {seconds(feed.making)} of a step of {seconds(strain.seconds / max(1, strain.steps))}; it "
            f"is made by {feed.maker}, without a DataLoader",
            cores_text(strain),
            f"{times(1 / max(1 - feed.share, 0.01))} as fast if the batch were there when it is wanted",
        ),
        where=Where(hot.file, hot.line, hot.function, pid=strain.pid),
        fix=cheaper + elsewhere,
        seen_by="py-spy",
        also=(Where(line.file, line.line, line.function, pid=strain.pid),) if waits and hot is not line else (),
    )


RULE = Rule("starved-for-data", "pace", decide, gathers=True)
