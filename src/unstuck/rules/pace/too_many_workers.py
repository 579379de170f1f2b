"""too-many-workers: the workers cost more than they bring.

What it sees
    The training waits for batches while its workers idle: handing them over takes longer than making them. Or, as
    information, more workers compute than there are cores that the run may use (affinity and cgroup quota counted),
    they fill these by themselves, and the training process is ready to run a tenth of the time or more without
    getting a core.

Why it matters
    The training waits for batches that it could have made itself in less time; or its own steps queue for a core behind
    all those workers.

Evidence
    How long a batch takes to make, and how long the training waits for it; or workers and cores, how long both waited
    in the run queue, and who else used the cores. The second is no proof of a loss: if all the work is needed, fewer
    workers do it no faster, and some measured trainings took as long with one worker as with eight.

Fix
    Set `num_workers` to 0 if batches are quickly made; else let `unstuck tune` measure whether fewer are better.

When it is wrong
    Workers that mostly wait for a disk or a network may well outnumber the cores; they are not reported, nor is a
    machine that others use too. If the cores are full and the training waits for data as well, there are simply too
    few of them: then what makes the batches expensive is the finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Strain, Where
from unstuck.rules.loader_reports import first_of
from unstuck.rules.pace.loader_waits import (
    MIN_LOST_SHARE,
    LoaderWait,
    cores_text,
    crowded,
    late,
    mean,
    starving,
    times,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

MIN_GAIN = 1.1  # times as fast without workers
MAX_THREADS_PER_WORKER = 1.5  # more: it is the threads that are too many


def decide(case: Case) -> Iterable[Finding]:
    wait = starving(case)
    if wait is not None:
        yield from _idle_workers(wait)
        return
    strain = next((strain for strain in reversed(case.strains) if _too_many(strain)), None)
    if strain is None:
        return
    yield RULE.finding(
        severity="info",
        confidence=0.8,
        title=f"{len(strain.fetchers)} workers fill {strain.cores:.3g} cores: the training waits {strain.delayed:.0%} "
        "of the time for one",
        evidence=(
            f"ready to run and without a core: the workers {late(strain):.0%} of the time they had work, the "
            f"training process {strain.delayed:.0%} of all time",
            cores_text(strain),
        ),
        where=_loader(case, strain),
        fix="Reduce the work on a sample, or use more cores; `unstuck tune` measures whether fewer workers are better.",
        seen_by="kernel",
    )


def _idle_workers(wait: LoaderWait) -> Iterable[Finding]:
    """The training waits though its workers idle: it would be faster without them."""
    gain = wait.gain(wait.fetch_seconds, 0)
    if not wait.idle_workers or wait.busy_machine or not wait.fetch_seconds or gain < MIN_GAIN:
        return
    yield RULE.finding(
        severity="warning",
        confidence=0.8,
        title=f"handing batches over takes longer than making them: the training waits {wait.share:.0%} of the time, "
        "and its workers idle",
        evidence=(
            wait.lost_text,
            f"a worker makes a batch in {seconds(wait.fetch_seconds)} and is busy {wait.busy:.0%} of the time; the "
            f"training waits {seconds(wait.wait_per_batch)} for each and works on it for {seconds(wait.step_seconds)}",
            cores_text(wait.strain),
            f"{times(gain)} as fast if the training made its batches itself",
        ),
        where=wait.report.where(),
        fix=Fix(
            "Set num_workers=0 there, or make the batches larger; `unstuck tune` measures which is best.",
            setting="workers",
            value="0",
        ),
    )


def _too_many(strain: Strain) -> bool:
    threads = mean(float(fetcher.threads) for fetcher in strain.fetchers)
    if len(strain.fetchers) <= strain.cores or threads >= MAX_THREADS_PER_WORKER:
        return False
    return crowded(strain) and strain.delayed >= MIN_LOST_SHARE


def _loader(case: Case, strain: Strain) -> Where:
    """The loader that has so many workers."""
    own = [loader for loader in case.loaders if loader.pid == strain.pid]
    own.sort(key=lambda loader: loader.num_workers != len(strain.fetchers))
    return first_of(strain.pid, None, own[0].site if own else None)


RULE = Rule("too-many-workers", "pace", decide, explains=frozenset({"starved-for-data"}), gathers=True)
