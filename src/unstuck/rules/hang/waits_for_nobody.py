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

from unstuck.model import Case, Finding, Where
from unstuck.recorder.records.deaths import Raised, ThreadDied
from unstuck.rules.hang import waiting
from unstuck.rules.hang.blocked import blocked
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.hang.work import computing_elsewhere
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who
from unstuck.text import listed, signal_name, spot

_NEVER = {
    waiting.EVENT: "an event that nobody will set",
    waiting.GET: "a queue that nobody serves",
    waiting.PUT: "space in a queue that nobody empties",
    waiting.JOIN: "a thread or process that will not end",
    waiting.FUTURE: "a future that nobody will complete",
    waiting.BARRIER: "a barrier that not everybody will reach",
    waiting.COROUTINE: "a task that nothing will wake",
    waiting.LOCK: "a manager's lock that nobody will release",
}

_POOLS = ("multiprocessing/pool.py", "concurrent/futures/process.py")
_KILLED_FIX = (
    "Find out who killed it (`dmesg` shows the kernel's out-of-memory kills) and give each task less memory; "
    "concurrent.futures.ProcessPoolExecutor raises BrokenProcessPool instead of waiting forever."
)


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "answer"):
        word = _word(still)
        threads, processes = _dead_threads(still), _dead_processes(still)
        killed = any(number for _, number in processes) and _waits_for_pool(still)
        deaths = [*map(_thread_death, threads), *(line for line, _ in processes)]
        yield still.finding(
            RULE,
            title=f"{still.who} is waiting for {_NEVER[word]}",
            evidence=(
                f"{still.who} has been waiting at {place(still.frame)} ({word}) for {still.lasting}",
                *deaths,
                "multiprocessing.Pool replaces a killed process, but its task is lost and never answered"
                if killed
                else "",
                _silence(still, bool(deaths)),
            ),
            fix=_KILLED_FIX if killed else _fix(still, word, bool(deaths)),
            also=tuple(place for died in threads for place in _places(died)),
        )


def _word(still: Standstill) -> str:
    if waiting.idle_event_loop(still.thread):
        return waiting.COROUTINE
    asked = waiting.proxied_call(still.thread)
    return asked or (waiting.GET if still.kind == "pipe-read" else waiting.awaited(still.thread))


def _dead_threads(still: Standstill) -> list[ThreadDied]:
    return [died for died in still.case.thread_deaths if died.pid == still.process.pid]


def _places(died: ThreadDied) -> tuple[Where, ...]:
    """Where it raised."""
    if not died.raised.frames:
        return ()
    file, line, function = died.raised.frames[0][:3]
    return (Where(file=file, line=line, function=function, pid=died.pid),)


def _thread_death(died: ThreadDied) -> str:
    return f"thread {died.thread or 'without a name'} of this process died: {_raised(died.raised)}"


def _raised(raised: Raised) -> str:
    at = f" ({spot(*raised.frames[0][:3])})" if raised.frames else ""
    return f"{raised.type}: {raised.message}{at}"


def _dead_processes(still: Standstill) -> list[tuple[str, int | None]]:
    """Processes of the run that have exited, where one could be at the other end, and the signal that ended each."""
    if still.kind not in ("pipe-read", "shared-lock") and not _waits_for_pool(still):
        return []
    return [_exit(still.case, f.pid) for f in still.case.flights if not f.alive and f.role != "worker"][-3:]


def _waits_for_pool(still: Standstill) -> bool:
    return any(frame.file.endswith(_POOLS) for thread in still.process.threads for frame in thread.frames)


def _exit(case: Case, pid: int) -> tuple[str, int | None]:
    died = next((died for died in case.deaths if died.pid == pid), None)
    code = next((ended.code for ended in case.children_ended if ended.child == pid), 0)
    if died is not None:
        return f"process {pid} of this run has exited: {_raised(died.raised)}", None
    if code < 0:
        return f"process {pid} of this run was killed by {signal_name(-code)}", -code
    return f"process {pid} of this run has exited{f' with code {code}' if code else ''}", None


def _silence(still: Standstill, dead: bool) -> str:
    if _blocks_its_loop(still):
        return "this thread runs the asyncio loop that should complete it: while it waits, the loop runs nothing"
    if waiting.proxied_call(still.thread):
        users = [p for p in still.look.processes if p.threads and p.is_python and not waiting.keeps_for_others(p)]
        left = [f"{who(p)} waits at {place(p.user_frame)}" for p in users if p.pid != still.process.pid]
        return f"it is kept by a multiprocessing.Manager, and {'; '.join(left[:4]) or 'no other process is left'}"
    if waiting.idle_event_loop(still.thread):
        return "its asyncio loop has no timer set and no connection open: whatever should wake the task is gone"
    if not still.proven:
        moving = [who(process) for process in computing_elsewhere(still)]
        return f"meanwhile {listed(moving[:4])} used the CPU" if moving else "nothing moved in any process meanwhile"
    if still.kind == "pipe-read":
        if not still.others:
            return "no other living process has the writing end of that queue's pipe"
        writers = [
            f"{who(p)}, itself waiting at {place(p.main_thread.current_frame)}" for p in still.others if p.main_thread
        ]
        return f"only these could write to it: {'; '.join(writers[:4])}"
    others = [t for t in still.process.threads if t.python and t.tid != still.thread.tid]
    if not others:
        return f"it has no other Python thread that could answer{' any more' if dead else ''}"
    at = "; ".join(f"{t.name or t.tid} at {place(t.current_frame)}" for t in others[:4])
    return f"each of its other Python threads waits too: {at}"


def _blocks_its_loop(still: Standstill) -> bool:
    return waiting.blocks_event_loop(still.thread) and waiting.awaited(still.thread) == waiting.FUTURE


def _fix(still: Standstill, word: str, dead: bool) -> str:
    if word == waiting.LOCK:
        return "Take the lock in a `with` block: a process that ends without releasing it keeps it forever."
    if dead:
        return "Catch the error where it happens, pass it to the waiting side (by the queue), and wait with a timeout."
    if _blocks_its_loop(still):
        return "Use `await` inside a coroutine instead of waiting for the future's result."
    if word == waiting.FUTURE and waiting.in_pool(still.thread):
        return "Do not wait for a future inside the pool that must run it: use a second pool, or more threads."
    if word == waiting.BARRIER:
        return "Let every party reach the barrier as often as the others, or call its abort() when one leaves early."
    return f"Make sure the other side is running, and give the {word} a timeout."


RULE = Rule("waits-for-nobody", "hang", decide, disproved_by_end=True)
