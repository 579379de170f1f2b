"""dataset-copied-to-workers: every worker gets its own copy of the dataset.

What it sees
    With spawn and forkserver the dataset is pickled for each worker: the size of the pickle, and the time it took.
    With fork the workers share the parent's memory at first: pages that became their own while the shared ones became
    fewer, though nothing was written on purpose (reading a Python object counts its references, and that is a write).
    A script's own processes: the same array, with the same contents, in every message to them. A job of a pool brings
    along all that its function carries: a bound method its whole object.

Why it matters
    Each epoch starts late if much is pickled for it, and memory fills up with one copy per worker.

Evidence
    Bytes and seconds of the pickle, workers, epochs; or how much of the parent's memory each worker has copied; or
    messages, their bytes, and the time that pickling and writing them took at least.

Fix
    Keep what is large outside the Python objects of the dataset: in a tensor (shared, not copied), a memory-mapped
    file (`numpy.memmap`, Arrow), or a file that each worker opens itself. `persistent_workers=True` copies once. A pool
    gets it once by its `initializer`, or by fork from a global variable; jobs then name rows only.

When it is wrong
    A copy that costs no time and fits into memory does no harm: then this is information.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import LoaderSettings, RepeatedPickles
from unstuck.rules.loader_reports import first_of, settings_of
from unstuck.rules.pace.loader_waits import MIN_LOST_SHARE, loader_waits, times
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds, size

LARGE_BYTES = 10_000_000  # of a pickle: worth reporting if it costs time
HUGE_BYTES = 250_000_000  # of all copies: worth reporting if it does not
MIN_LOST_SECONDS = 2.5
MIN_SENDING_SECONDS, MIN_SENDING_SHARE = 1.5, 0.15
"""For pickling and writing alone, and of the time since the first large message. Reading takes as long again."""
MIN_PICKLING_SHARE = 0.3  # of the start of the workers: making the pickle is one part of it, loading it another


def decide(case: Case) -> Iterable[Finding]:
    for sent in {sent.pid: sent for sent in case.repeated_pickles}.values():
        if sent.sending >= max(MIN_SENDING_SECONDS, MIN_SENDING_SHARE * sent.seconds):
            yield _sent_again(sent)
    slow = next(_slow(case), None)
    if slow is not None:
        yield slow
        return
    yield from _large(case)
    yield from _forked(case)


def _slow(case: Case) -> Iterator[Finding]:
    for wait in loader_waits(case):
        state = wait.state
        lost, total = max(wait.restart_seconds, state.pickling), max(wait.seconds, state.since_first)
        share = lost / total
        large = state.pickled >= LARGE_BYTES and lost >= MIN_LOST_SECONDS and share >= MIN_LOST_SHARE
        if not large or state.pickling < MIN_PICKLING_SHARE * max(state.opening, lost / 2):
            continue
        yield RULE.finding(
            severity="warning",
            confidence=0.9,
            title=f"{share:.0%} of the time goes into copying {size(state.pickled)} of dataset to {wait.workers_text}",
            evidence=(
                f"each worker is started with a pickle of {size(state.pickled)}; making them took "
                f"{seconds(state.pickling)} over {state.passes:,} epochs",
                f"starting workers took {seconds(lost)} of {seconds(total)}",
                f"{times(1 / max(0.05, 1 - share))} as fast if there were nothing to copy",
            ),
            where=wait.report.where(),
            fix=_fix(once=state.passes < 2),
        )


def _sent_again(sent: RepeatedPickles) -> Finding:
    share = sent.sending / max(sent.seconds, sent.sending)
    what = f"`{sent.name}`" if sent.name else "the same array"
    return RULE.finding(
        severity="warning",
        confidence=0.9,
        title=f"{share:.0%} of the time goes into sending {what} ({size(sent.size)}) to other processes with every job",
        evidence=(
            f"{sent.messages:,} large messages with {size(sent.bytes)} in all: pickling and writing them took "
            f"{seconds(sent.sending)} of {seconds(sent.seconds)}, and reading them comes on top of that",
            f"in each of those looked at, most of it was {what}, at the same address and with the same contents",
            f"at least {times(1 / max(0.05, 1 - share))} as fast if the processes had it already",
        ),
        where=first_of(sent.pid, None, sent.line),
        fix="Give it to the processes once: with `initializer=` and `initargs=` of the pool, or as a global variable "
        "before they are forked; send rows or seeds only. A bound method (`self.score`) takes its whole object along.",
    )


def _large(case: Case) -> Iterable[Finding]:
    """A copy that costs memory only."""
    for started in case.workers_started:
        copies = len(started.pids)
        if started.pickled * copies < HUGE_BYTES:
            continue
        yield RULE.finding(
            severity="info",
            confidence=0.9,
            title=f"each of {copies} workers has its own copy of the dataset, {size(started.pickled)}",
            evidence=(
                f"each worker is started with a pickle of {size(started.pickled)}: "
                f"{size(started.pickled * copies)} in total",
                f"making them took {seconds(started.pickling)}",
            ),
            where=first_of(started.pid, None, settings_of(case, started.pid, started.number).site),
            fix=_fix(once=True),
        )
        return


def _forked(case: Case) -> Iterable[Finding]:
    """Forked workers that read Python objects of the parent's, page by page."""
    copied = [c for c in case.copies if c.shared_before - c.shared >= c.private - c.private_before > 0]
    grown = sum(copy.private - copy.private_before for copy in copied)
    if grown < HUGE_BYTES:
        return
    most = max(copied, key=lambda copy: copy.private - copy.private_before)
    loader = next(iter(case.loaders), LoaderSettings(pid=most.pid))
    yield RULE.finding(
        severity="info",
        confidence=0.8,
        title=f"reading the dataset copies it: {len(copied)} forked workers now have {size(grown)} of the parent's "
        "memory as their own",
        evidence=(
            f"worker pid {most.pid} began with {size(most.private_before)} of its own and "
            f"{size(most.shared_before)} shared with its parent; after {seconds(most.seconds)} it has "
            f"{size(most.private)} of its own and {size(most.shared)} shared",
            f"{size(grown)} more than at the start, in {len(copied)} workers",
        ),
        where=first_of(loader.pid, None, loader.dataset_site, loader.site),
        fix=_fix(once=True),
        seen_by="kernel",
    )


def _fix(once: bool) -> Fix:
    again = "" if once else " persistent_workers=True at least copies it only once."
    return Fix(
        "Keep what is large out of the dataset's Python objects: in one tensor or array instead of a list (a tensor "
        "is shared, not copied), in a memory-mapped file, or in a file that each worker opens itself." + again
    )


RULE = Rule(
    "dataset-copied-to-workers", "pace", decide, explains=frozenset({"workers-restart-every-epoch"}), gathers=True
)
