"""waits-for-nobody: waiting for somebody who will not come.

What it sees
    The stuck thread waits in a queue's get or put, for an event, a condition, a barrier, a future or a thread, and
    whoever should answer has died, was never started, or is itself waiting for this one.

Why it matters
    Such waits have no time limit by default: they end only when the other party acts.

Evidence
    The line and what it waits for; what became of the other party, with its exception if it died of one; or that
    every thread that could answer waits too.

Fix
    Give the wait a time limit and check on the producer; let a producer that fails hand its error on.

When it is wrong
    Said at once only when nobody who could answer can run; otherwise after a very long time.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Process
from unstuck.recorder.records.deaths import ThreadDied
from unstuck.rules.hang.lock_lost_in_fork import lost_in_fork
from unstuck.rules.hang.queue_not_drained import undrained
from unstuck.rules.hang.standstill import Standstill, process_of, seat, standstills
from unstuck.rules.hang.waiting import COROUTINE, GET, LOCK, awaited, idle_event_loop, reads_queue
from unstuck.rules.hang.waits_on_rank import in_collective
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        if not _waits_for_somebody(still) or not still.certain:
            continue
        word = _word(still)
        deaths = _deaths(still)
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(still.process)} waits at a {word} for somebody who will not come",
            evidence=(
                f"{who(still.process)} has waited at {place(still.frame)} for {still.lasting}",
                *deaths,
                *_silence(still, bool(deaths)),
            ),
            where=still.where(),
            fix=Fix(_fix(word, deaths)),
            seen_by="kernel",
            also=(),
        )


def _word(still: Standstill) -> str:
    if idle_event_loop(still.thread):
        return COROUTINE
    return GET if still.kind == "pipe-read" else awaited(still.thread)


def _waits_for_somebody(still: Standstill) -> bool:
    if undrained(still) is not None or lost_in_fork(still) or in_collective(still.thread):
        return False
    if idle_event_loop(still.thread):
        return True
    if still.kind == "pipe-read":
        return reads_queue(still.thread)
    if still.kind not in ("lock", "shared-lock"):
        return False
    return awaited(still.thread) != LOCK


def _deaths(still: Standstill) -> list[str]:
    """Threads of this process that died of an exception, and processes of the run that ended."""
    said = [_thread_death(each) for each in still.case.thread_deaths if each.pid == still.process.pid]
    if still.kind in ("pipe-read", "shared-lock"):
        gone = [f for f in still.case.flights if not f.alive and f.role != "worker"]
        for flight in gone[-3:]:
            died = next((each for each in still.case.deaths if each.pid == flight.pid), None)
            how = f": {died.raised.type}: {died.raised.message}" if died else ""
            said.append(f"process {flight.pid} of this run has ended{how}")
    return said


def _thread_death(died: ThreadDied) -> str:
    raised = died.raised
    file, line, function, _ = raised.frames[0] if raised.frames else ("", 0, "", False)
    return (
        f"thread {died.thread or 'a thread'} of this process died of {raised.type}: {raised.message} "
        f"({file.rpartition('/')[2]}:{line} in {function})"
    )


def _silence(still: Standstill, dead: bool) -> list[str]:
    if idle_event_loop(still.thread):
        return ["its asyncio loop has no timer set and hears from nobody: the task it awaits waits for a dead one"]
    if not still.proven:
        return ["nothing moved in any process meanwhile"]
    others = [t for t in still.process.threads if t.python and t.tid != still.thread.tid]
    if still.kind == "pipe-read":
        return (
            ["no other living process has the writing end of that queue's pipe"]
            if not _writers(still)
            else [f"who could write to it: {', '.join(who(p) for p in _writers(still))}, itself waiting"]
        )
    if not others:
        return ["it has no other Python thread that could answer" + (" any more" if dead else "")]
    at = "; ".join(f"{t.name or t.tid} at {place(seat(t))}" for t in others[:4])
    return [f"every other Python thread of it waits too: {at}"]


def _writers(still: Standstill) -> list[Process]:
    wait = still.thread.wait
    return [p for pid in (wait.others if wait else ()) if (p := process_of(still.look, pid))]


def _fix(word: str, deaths: list[str]) -> str:
    if deaths:
        return (
            "Catch the error where it happens and hand it on to the waiting side (put it on the queue), and give the "
            "wait a timeout."
        )
    if word == "future":
        return (
            "Do not wait for a future inside the pool that must run it: use a second pool, or more threads than "
            "waiters."
        )
    return f"Give the {word} a timeout, and see to it that the other party is started and always answers."


RULE = Rule("waits-for-nobody", "hang", decide, disproved_by_end=True)
