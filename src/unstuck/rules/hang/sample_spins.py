"""sample-spins: one sample computes for ever.

What it sees
    A thread burns CPU inside the data set, a transform, `collate_fn` or the sampler, and it is the same sample
    for the whole standstill.

Why it matters
    The batch with that sample is never finished, and batches are handed out in order: main waits for it although
    other workers may have theirs ready.

Evidence
    The sample's index and how long it has taken, beside the time of all other samples of this run; the processor
    time used meanwhile; the lines of the loop in which successive looks found the thread.

Fix
    Bound the loop, and raise with the sample's index when the bound is reached: one bad sample then names itself
    instead of holding up the run.

When it is wrong
    A sample that honestly takes a thousand times longer than the rest. Without other samples to compare with
    (the very first one), or before 10 s, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Pace
from unstuck.rules.hang.peers import excess
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.trying import fails_again, polled_path, retried
from unstuck.rules.hang.work import busy, cpu_line, culprit_frame, seen_lines
from unstuck.rules.rule import Rule
from unstuck.rules.words import lines, place, seconds, who

ENOUGH_SAMPLES = 20  # fewer say nothing about what is usual
MANY_SAMPLES = 200  # so many make the longest of them a measure too, and one that a crowded machine blurs less


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not still.in_sample or not busy(still) or fails_again(still) or polled_path(still):
            continue
        pace = sample_pace(case)
        took = sample_seconds(still)
        outside = far_outside(took, pace, case.times.busy_ratio)
        if retried(still) or (not (took >= case.times.busy and outside) and not still.long):
            continue
        frame = culprit_frame(still)
        loop = f"loop at {lines(frame.loop)}" if frame and frame.loop else "code"
        more = excess(case, still.process)
        yield RULE.finding(
            severity="error",
            confidence=0.95 if outside else 0.9 if more else still.confidence,
            title=f"{what_sample(still)} never finishes: the {loop} of {place(frame)} does not end",
            evidence=(
                f"{who(still.process)} has been on {what_sample(still)} for {still.words(took)}"
                f"{_compared(pace, still)}",
                *([more.line] if more else []),
                cpu_line(still),
                *seen_lines(still, frame),
            ),
            where=still.where(frame),
            fix=Fix(
                f"Give the {loop} a bound and raise an error that names the sample when it is reached; "
                f"then look at this sample's data."
            ),
            seen_by=still.seen_by,
        )


def _compared(pace: Pace, still: Standstill) -> str:
    if pace.count:
        return (
            f"; the {pace.count:,} samples before it took {seconds(pace.median)} at the median, "
            f"{seconds(pace.longest)} at most"
        )
    unknown = still.flight is not None and still.flight.inferred
    return "" if unknown else "; no sample was finished before it"


def far_outside(took: float, pace: Pace, ratio: float) -> bool:
    """A thousand times the 99th percentile; or, of many samples, a hundred times the longest there ever was."""
    if pace.count < ENOUGH_SAMPLES:
        return False
    return took >= ratio * pace.p99 or (pace.count >= MANY_SAMPLES and took >= ratio / 10 * pace.longest)


def sample_pace(case: Case) -> Pace:
    """All finished samples of the run, over all processes; quantiles are the largest of theirs."""
    paces = [p for f in case.flights if (p := f.paces.get("sample")) and p.count]
    if not paces:
        return Pace()
    return Pace(
        count=sum(p.count for p in paces),
        median=max(p.median for p in paces),
        p99=max(p.p99 for p in paces),
        longest=max(p.longest for p in paces),
    )


def sample_seconds(still: Standstill) -> float:
    """How long the sample in work has taken: by its own clock, and never longer than the standstill allows."""
    flight = still.flight
    if flight is None:
        return still.stall.standing
    since = max(flight.moved, flight.since, flight.sample_since)
    return max(0.0, flight.read_at - since) if since else still.stall.standing


def what_sample(still: Standstill) -> str:
    flight = still.flight
    if flight is None:
        return "the sample"
    if not flight.fetching:
        return "drawing the next batch's indices from the sampler"
    if flight.collating:
        return "collating the batch"
    if flight.sample is not None:
        return f"sample {flight.sample}"
    if flight.sample_key:
        return f"sample {flight.sample_key}"
    return f"sample number {flight.position}" if flight.position is not None else "the sample"


RULE = Rule("sample-spins", "hang", decide, disproved_by_end=True)
