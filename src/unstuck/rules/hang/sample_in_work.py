"""The sample a standstill is in: which one, how long it takes compared with the others, and what it tries again."""

from __future__ import annotations

from unstuck.model import Case, Flight, Frame, Pace, PathFact
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.hang.work import looks_of

MIN_SAMPLES = 20  # fewer say nothing about what is usual
MANY_SAMPLES = 200  # make the longest of them a measure too, one that a crowded machine blurs less
MIN_ATTEMPTS = 5  # within one sample, for a retry


def what_sample(still: Standstill) -> str:
    flight = still.flight
    if flight is None:
        return "the sample"
    if not flight.fetching:
        return "drawing the next batch's indices from the sampler"
    if flight.collating:
        return "collating the batch"
    if flight.sample is not None or flight.sample_key:
        return f"sample {flight.sample_key if flight.sample is None else flight.sample}"
    return f"sample number {flight.position}" if flight.position is not None else "the sample"


def sample_seconds(still: Standstill) -> float:
    """How long the sample in work has taken: by its own clock, and never longer than the standstill allows."""
    flight = still.flight
    since = max(flight.moved, flight.since, flight.sample_since) if flight else 0.0
    return max(0.0, flight.read_at - since) if flight and since else still.stall.standing


def sample_pace(case: Case) -> Pace:
    """All finished samples of the run, over all processes; quantiles are the largest of theirs."""
    paces = [p for f in case.flights if (p := f.paces.get("sample")) and p.count]
    return Pace(
        count=sum(p.count for p in paces),
        median=max((p.median for p in paces), default=0.0),
        p99=max((p.p99 for p in paces), default=0.0),
        longest=max((p.longest for p in paces), default=0.0),
    )


def far_outside(took: float, pace: Pace, ratio: float) -> bool:
    """A thousand times the 99th percentile; or, of many samples, a hundred times the longest there ever was."""
    if pace.count < MIN_SAMPLES:
        return False
    return took >= ratio * pace.p99 or (pace.count >= MANY_SAMPLES and took >= ratio / 10 * pace.longest)


def is_inferred(flight: Flight | None) -> bool:
    """The process recorded nothing: its attempts cannot be counted, only its source can be read."""
    return flight is not None and flight.inferred


def retrying_frame(still: Standstill) -> Frame | None:
    """The loop that catches its errors and goes round again, by its source; only where attempts are not counted."""
    if not is_inferred(still.flight) or not still.in_sample:
        return None
    return next((f for f in still.thread.frames if f.user and f.tries), None)


def polled_path(still: Standstill) -> str:
    """Expression of the lock file that the innermost loop of the user's waits to be rid of; empty if none."""
    frame = next((f for f in still.thread.frames if f.user or f.polls), None)
    return frame.polls if frame else ""


def target_fact(still: Standstill) -> PathFact | None:
    """What is known of the file or address that was tried last."""
    flight, paths = still.flight, still.case.paths
    if is_inferred(flight):
        frame = retrying_frame(still)
        expression = frame.tries if frame else ""
        return next((f for f in paths if f.expression == expression and f.pid == still.process.pid), None)
    if flight is None or not flight.attempt_target:
        return None
    return next((f for f in paths if f.path == flight.attempt_target), None)


def fails_again(still: Standstill) -> bool:
    """It opened or connected to something again and again within the sample, and the last try cannot succeed."""
    flight, fact = still.flight, target_fact(still)
    if flight is None or not (flight.inferred or flight.attempts >= MIN_ATTEMPTS):
        return False
    if fact is None:
        return not flight.inferred and is_address(flight.attempt_target)
    return bool(fact.error) or not fact.exists


def sleeps_again(still: Standstill) -> bool:
    """It slept, woke and slept again: by its own count, or by the kernel's between looks that found it asleep."""
    flight = still.flight
    if flight is not None and flight.sleeps >= 2:
        return True
    asleep = [t for _, t in looks_of(still) if t.wait is not None and t.wait.kind == "sleep"]
    return len(asleep) >= 2 and asleep[-1].switches - asleep[0].switches >= 2


def is_address(target: str) -> bool:
    host, _, port = target.rpartition(":")
    return bool(host) and port.isdigit()
