"""sample-retries: one sample fails and is tried again and again.

What it sees
    The same sample sleeps, opens a file or connects, fails, and starts over, for the whole standstill.

Why it matters
    The error that would have named the broken sample is caught inside the loop, so nobody hears of it, and the
    batch never comes.

Evidence
    What is tried (the path or the address), how often within this one sample, and what comes back when it is
    tried from outside.

Fix
    Bound the retries and raise the last error, with the sample's index, when they are used up.

When it is wrong
    Somebody may yet create the file or open the port. A few retries that succeed within seconds are silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.hang.sample_spins import far_outside, sample_pace, sample_seconds, what_sample
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.hang.trying import (
    UNNAMED,
    fails_again,
    is_address,
    polled_path,
    retried,
    retrying_frame,
    sleeps_again,
    target_fact,
)
from unstuck.rules.hang.work import culprit_frame
from unstuck.rules.rule import Rule
from unstuck.rules.words import lines, place, who

FAST = 20.0  # tries a second: no back-off, so nothing is being waited for
SLOW_AFTER = 1.2  # a retry with pauses gets this much more time than a hot one


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not still.in_sample or not _retries(still):
            continue
        took = sample_seconds(still)
        if not _enough(still, took) and not still.long:
            continue
        frame = retrying_frame(still) or culprit_frame(still)
        yield RULE.finding(
            severity="error",
            confidence=0.93 if fails_again(still) else 0.85,
            title=f"{what_sample(still)} fails and is retried without end at {place(frame)}",
            evidence=(
                f"{who(still.process)} has been on {what_sample(still)} for {still.words(took)}",
                *_tries(still),
                *(
                    [f"the retry is the loop at {lines(frame.loop)} of {frame.function}"]
                    if frame and frame.loop
                    else []
                ),
            ),
            where=still.where(frame),
            fix=Fix(_fix(still)),
            seen_by=still.seen_by if still.flight is None or still.flight.inferred else "flight",
        )


def _retries(still: Standstill) -> bool:
    if polled_path(still) and not fails_again(still):
        return False
    asleep = still.kind in ("sleep", "socket", "running", "unknown") and sleeps_again(still)
    return fails_again(still) or asleep or bool(retried(still))


def _enough(still: Standstill, took: float) -> bool:
    """Failing at full speed at once, failing with pauses a little later, mere sleeping only far outside its kind."""
    times, flight = still.case.times, still.flight
    if flight is None:
        return False
    if flight.inferred:
        return False  # from outside the tries cannot be counted: only time tells
    if fails_again(still):
        hot = took > 0 and flight.attempts / took >= FAST
        return took >= times.busy * (1 if hot else SLOW_AFTER)
    return took >= times.busy and far_outside(took, sample_pace(still.case), times.busy_ratio)


def _tries(still: Standstill) -> list[str]:
    flight, fact = still.flight, target_fact(still)
    if flight is None:
        return []
    said = []
    if flight.inferred and retried(still):
        named = "" if retried(still) == UNNAMED else f" (`{retried(still)}`"
        path = f", which is {fact.path})" if fact and named else ")" if named else ""
        said.append(f"the loop it is in catches what goes wrong{named}{path} and tries again")
    if flight.attempts > 1:
        what = "connect" if is_address(flight.attempt_target) else "open a file"
        said.append(
            f"within this one sample it has tried to {what} {flight.attempts:,} times, last {flight.attempt_target}"
        )
    if fact is not None and (fact.error or not fact.exists):
        said.append(f"tried from outside: {fact.error or 'No such file or directory'}")
    if flight.sleeps > 1:
        said.append(f"within this one sample it has called time.sleep {flight.sleeps:,} times")
    return said


def _fix(still: Standstill) -> str:
    flight, fact = still.flight, target_fact(still)
    target = fact.path if fact else flight.attempt_target if flight else ""
    if fact is not None and not fact.exists:
        return f"Correct the path ({target} does not exist), and bound the retries so that the last error is raised."
    if is_address(target):
        return f"See that {target} answers, and bound the retries so that the last error is raised."
    return "Bound the retries and raise the last error, with the sample's index, when they are used up."


RULE = Rule("sample-retries", "hang", decide, disproved_by_end=True)
