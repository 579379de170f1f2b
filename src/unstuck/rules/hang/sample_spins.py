"""sample-spins: one sample computes forever.

What it sees
    A thread burns CPU inside the dataset, a transform, `collate_fn` or the sampler, and it is the same sample for the
    whole standstill.

Why it matters
    The batch with that sample is never finished, and batches are handed out in order: main waits for it although
    other workers may have theirs ready.

Evidence
    The sample's index and how long it has taken, compared with all other samples of this run; the CPU time used
    meanwhile; the lines of the loop in which successive stack samples found the thread.

Fix
    Limit the loop, and raise with the sample's index when the limit is reached: a bad sample then names itself
    instead of holding up the run.

When it is wrong
    A sample that really takes a thousand times longer than the rest. Without other samples to compare with
    (the very first one), or before 10 s, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Flight, Pace
from unstuck.rules import scans
from unstuck.rules.hang import work
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import loop_or_code, seconds


def decide(case: Case) -> Iterable[Finding]:
    yield from scans.hanging(RULE, case, spins=True)
    for still in standstills(case):
        flight = still.sampling
        if flight is None or not work.busy(still) or _tries_something(still):
            continue
        pace, took, sample = work.sample_pace(case), work.sample_seconds(still, flight), work.what_sample(flight)
        outside = work.far_outside(took, pace, case.times.busy_ratio)
        if not (took >= case.times.busy and outside) and not still.long:
            continue
        frame = work.culprit_frame(still)
        more = work.excess(case, still.process)
        yield still.finding(
            RULE,
            confidence=0.95 if outside else 0.9 if more else still.confidence,
            title=f"{sample} never finishes: {loop_or_code(frame)} does not end",
            evidence=(
                f"{still.who} has been busy with {sample} for {still.words(took)}{_usual(pace, flight)}",
                more.line if more else "",
                work.cpu_line(still),
                work.seen_line(still, frame),
            ),
            where=still.where(frame),
            fix=f"Limit {loop_or_code(frame)}, and raise an error that names the sample when the limit is reached; "
            "then look at this sample's data.",
            seen_by=still.stacks_by,
        )


def _tries_something(still: Standstill) -> bool:
    """It does not compute: it tries something again and again, which other rules name."""
    return work.fails_again(still) or bool(work.polled_path(still)) or work.retrying_frame(still) is not None


def _usual(pace: Pace, flight: Flight) -> str:
    if pace.count:
        usual = f"{seconds(pace.median)} at the median, {seconds(pace.longest)} at most"
        return f"; the {pace.count:,} samples before it took {usual}"
    return "" if flight.inferred else "; no sample was finished before it"


RULE = Rule("sample-spins", "hang", decide, disproved_by_end=True)
