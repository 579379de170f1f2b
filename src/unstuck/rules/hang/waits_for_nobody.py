"""waits-for-nobody: waiting for somebody who will not come.

What it sees
    The stuck thread waits in a queue's get or put, for an event, a condition, a barrier, a future or a thread, and
    whoever should answer has died, was never started, or is itself waiting for this one.

Why it matters
    Such waits have no timeout by default: they end only when the other side acts. If it cannot, the run hangs forever
    without an error.

Evidence
    The line and what it waits for; what became of the other side, with the exception it died of; or that every
    thread that could answer waits too.

Fix
    Give the wait a timeout and check that the producer is alive; let a producer that fails pass its error on.

When it is wrong
    Reported at once only if nobody who could answer can run; otherwise after a very long time.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.deaths import ThreadDied
from unstuck.rules.hang import waiting
from unstuck.rules.hang.blocked import blocked
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who
from unstuck.text import spot

_NEVER = {
    waiting.EVENT: "an event that nobody will set",
    waiting.GET: "a queue that nobody serves",
    waiting.PUT: "space in a queue that nobody empties",
    waiting.JOIN: "a thread or process that will not end",
    waiting.FUTURE: "a future that nobody will complete",
    waiting.BARRIER: "a barrier that not everybody will reach",
    waiting.COROUTINE: "a task that nothing will wake",
}


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "answer"):
        word = _word(still)
        deaths = [*_dead_threads(still), *_dead_processes(still)]
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting for {_NEVER[word]}",
            evidence=(
                f"{still.who} has been waiting at {place(still.frame)} ({word}) for {still.lasting}",
                *deaths,
                _silence(still, bool(deaths)),
            ),
            fix=_fix(word, bool(deaths)),
        )


def _word(still: Standstill) -> str:
    if waiting.idle_event_loop(still.thread):
        return waiting.COROUTINE
    return waiting.GET if still.kind == "pipe-read" else waiting.awaited(still.thread)


def _dead_threads(still: Standstill) -> list[str]:
    return [_thread_death(died) for died in still.case.thread_deaths if died.pid == still.process.pid]


def _thread_death(died: ThreadDied) -> str:
    raised = died.raised
    at = f" ({spot(*raised.frames[0][:3])})" if raised.frames else ""
    return f"thread {died.thread or 'without a name'} of this process died: {raised.type}: {raised.message}{at}"


def _dead_processes(still: Standstill) -> Iterable[str]:
    """Processes of the run that have exited, where one could be at the other end."""
    if still.kind not in ("pipe-read", "shared-lock"):
        return
    for flight in [f for f in still.case.flights if not f.alive and f.role != "worker"][-3:]:
        died = next((died for died in still.case.deaths if died.pid == flight.pid), None)
        how = f": {died.raised.type}: {died.raised.message}" if died else ""
        yield f"process {flight.pid} of this run has exited{how}"


def _silence(still: Standstill, dead: bool) -> str:
    if waiting.idle_event_loop(still.thread):
        return "its asyncio loop has no timer set and no connection open: whatever should wake the task is gone"
    if not still.proven:
        return "nothing moved in any process meanwhile"
    if still.kind == "pipe-read":
        writers = ", ".join(map(who, still.others))
        if not writers:
            return "no other living process has the writing end of that queue's pipe"
        return f"only {writers} could write to it, and is itself waiting"
    others = [t for t in still.process.threads if t.python and t.tid != still.thread.tid]
    if not others:
        return f"it has no other Python thread that could answer{' any more' if dead else ''}"
    at = "; ".join(f"{t.name or t.tid} at {place(t.current_frame)}" for t in others[:4])
    return f"each of its other Python threads waits too: {at}"


def _fix(word: str, dead: bool) -> str:
    if dead:
        return "Catch the error where it happens, pass it to the waiting side (by the queue), and wait with a timeout."
    if word == waiting.FUTURE:
        return "Do not wait for a future inside the pool that must run it: use a second pool, or more threads."
    return f"Make sure the other side is running, and give the {word} a timeout."


RULE = Rule("waits-for-nobody", "hang", decide, disproved_by_end=True)
