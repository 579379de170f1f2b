"""sample-retries: one sample fails and is tried again and again.

What it sees
    The same sample sleeps, opens a file or connects, fails, and starts over, for the whole standstill.

Why it matters
    The loop catches the error that would have named the broken sample, so nobody sees it, and the batch never comes.

Evidence
    What is tried (the path or the address), how often within this one sample, and what happens when it is tried from
    outside.

Fix
    Limit the retries and raise the last error, with the sample's index, when they are used up.

When it is wrong
    Somebody may yet create the file or open the port. A few retries that succeed within seconds are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Flight
from unstuck.rules.hang import work
from unstuck.rules.hang.standstill import Standstill, standstills
from unstuck.rules.rule import Rule
from unstuck.rules.words import lines, place

HOT_ATTEMPTS_PER_SECOND = 20.0  # no back-off, so nothing is being waited for
PAUSING_FACTOR = 1.2  # a retry with pauses gets this much more time than a hot one
UNNAMED = "?"  # in Frame.tries: it opens nothing by a name


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        flight = still.sampling
        if flight is None or not _retries(still):
            continue
        took, sample = work.sample_seconds(still, flight), work.what_sample(flight)
        if not _long_enough(still, flight, took) and not still.long:
            continue
        frame = work.retrying_frame(still) or work.culprit_frame(still)
        loop = f"the retry is the loop at {lines(frame.loop)} of {frame.function}" if frame and frame.loop else ""
        yield still.finding(
            RULE,
            confidence=0.93 if work.fails_again(still) else 0.85,
            title=f"{sample} fails and is retried forever at {place(frame)}",
            evidence=(
                f"{still.who} has been busy with {sample} for {still.words(took)}",
                *_attempts(still, flight),
                loop,
            ),
            where=still.where(frame),
            fix=_fix(still, flight),
            seen_by=still.stacks_by if flight.inferred else "flight",
        )


def _retries(still: Standstill) -> bool:
    if work.fails_again(still):
        return True
    if work.polled_path(still):
        return False
    asleep = still.kind in ("sleep", "socket", "running", "unknown") and work.sleeps_again(still)
    return asleep or work.retrying_frame(still) is not None


def _long_enough(still: Standstill, flight: Flight, took: float) -> bool:
    """Failing at full speed at once, failing with pauses a little later, mere sleeping only far outside its kind."""
    times = still.case.times
    if flight.inferred:
        return False  # from outside the attempts cannot be counted: only time tells
    if work.fails_again(still):
        hot = took > 0 and flight.attempts / took >= HOT_ATTEMPTS_PER_SECOND
        return took >= times.busy * (1 if hot else PAUSING_FACTOR)
    return took >= times.busy and work.far_outside(took, work.sample_pace(still.case), times.busy_ratio)


def _attempts(still: Standstill, flight: Flight) -> Iterable[str]:
    fact, retrying = work.target_fact(still), work.retrying_frame(still)
    if retrying is not None:
        path = f", which is {fact.path}" if fact else ""
        named = "" if retrying.tries == UNNAMED else f" (`{retrying.tries}`{path})"
        yield f"the loop it is in catches what goes wrong{named} and tries again"
    if flight.attempts > 1:
        what = "connect" if work.is_address(flight.attempt_target) else "open a file"
        yield f"within this one sample it has tried {flight.attempts:,} times to {what}, last {flight.attempt_target}"
    if fact is not None and (fact.error or not fact.exists):
        yield f"tried from outside: {fact.error or 'No such file or directory'}"
    if flight.sleeps > 1:
        yield f"within this one sample it has called time.sleep {flight.sleeps:,} times"


def _fix(still: Standstill, flight: Flight) -> str:
    fact = work.target_fact(still)
    if fact is not None and not fact.exists:
        return f"Correct the path ({fact.path} does not exist), and limit the retries so that the last error is raised."
    if work.is_address(flight.attempt_target):
        return f"Make sure {flight.attempt_target} answers, and limit the retries so that the last error is raised."
    return "Limit the retries and raise the last error, with the sample's index, when they are used up."


RULE = Rule("sample-retries", "hang", decide, disproved_by_end=True)
