"""Proof that a wait cannot end: the set of processes that wait only for each other, or for nobody.

Begin with every process in which no Python thread ran between the last two looks; strike out each one that
waits for somebody outside the set; repeat until nothing changes. What is left can never move again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from unstuck.model import Case, Look, Process, Thread, Wait
from unstuck.rules.hang.waiting import answers_others, is_housekeeping, keeps_for_others
from unstuck.rules.rank_calls import absent
from unstuck.rules.rank_positions import world_of

BLOCKED = frozenset(("lock", "shared-lock", "file-lock", "pipe-read", "pipe-write", "child"))
_PYTHON_LOCKS = ("/threading.py", "/queue.py", "multiprocessing/synchronize.py", "concurrent/futures/_base.py")
_LOCK_CALLS = re.compile(r"\.(acquire|join|wait|result|get|put|shutdown|recv|map)\(")


def deadlocked(case: Case) -> frozenset[int]:
    """Pids of the processes that are proven stuck."""
    looks = [look for look in case.looks if look.stacks][-2:]
    if len(looks) < 2:
        return frozenset()
    before, now = looks
    wakers = {process.pid: _wakers(case, before, process) for process in now.processes}
    wakers.update(_ranks(case, before, now))
    for process in now.processes:
        if keeps_for_others(process):  # whoever else is there can ask it for something
            _add_all(wakers, process, now)
    stuck = {pid: others for pid, others in wakers.items() if others is not None}
    while free := [pid for pid, others in stuck.items() if not others <= stuck.keys()]:
        for pid in free:
            del stuck[pid]
    return frozenset(stuck)


def _ranks(case: Case, before: Look, now: Look) -> Iterator[tuple[int, set[int]]]:
    """A rank in a call waits for those that are not in it; each of them has to be there, and alive."""
    world = world_of(case)
    if world is None or world.unseen:
        return
    for position in world.positions.values():
        process, thread, call = now.process(position.flight.pid), position.thread, position.call
        if process is None or thread is None or call is None or not call.entered:
            continue
        missed = absent(world, position)
        others = [t for t in process.threads if t.python and t is not process.main_thread]
        idle = all(is_housekeeping(t) or answers_others(t) for t in others)
        if idle and missed and all(p.alive for p in missed) and _never_ran(before, process, thread):
            yield process.pid, {p.flight.pid for p in missed}


def _add_all(wakers: dict[int, set[int] | None], keeper: Process, now: Look) -> None:
    known = wakers[keeper.pid]
    served = [t.wait.target for t in keeper.threads if t.wait is not None and answers_others(t)]
    if any(target.startswith("tcp") for target in served):
        wakers[keeper.pid] = None  # also somebody on another machine
    elif known is not None:
        known.update(process.pid for process in now.processes if process.threads and process is not keeper)


def _wakers(case: Case, before: Look, process: Process) -> set[int] | None:
    """Other processes that could wake this one; empty: only itself could; None: it may move on its own."""
    if process.is_python and not process.threads:
        return None
    wakers: set[int] = set()
    for thread in [t for t in process.threads if t.python] or process.threads[:1]:
        if is_housekeeping(thread) or answers_others(thread):
            continue
        loader = _loader_partner(case, before, process) if thread is process.main_thread else None
        if loader is not None:
            wakers.add(loader)
        elif _stays_blocked(before, process, thread):
            wakers.update(thread.wait.others if thread.wait else ())
        else:
            return None
    return wakers - {process.pid}


def _loader_partner(case: Case, look: Look, process: Process) -> int | None:
    """Whom the main thread waits for in its DataLoader: main for a worker, a worker without work for main. Both wake
    now and then, and do nothing unless the other one hands something over."""
    flight, main = case.flight_of(process.pid), process.main_thread
    if flight is None or main is None:
        return None
    if flight.phase == "data" and not flight.fetching:
        return awaited_worker(case, look, process.pid)
    looping = any(f.function.endswith("_worker_loop") for f in main.frames) and not any(f.user for f in main.frames)
    return process.ppid if flight.role == "worker" and flight.phase == "idle" and looping else None


def awaited_worker(case: Case, look: Look, main: int) -> int | None:
    """Pid of the worker main waits for: the one its own frame names, else the one that has been at its batch, or at
    its own start, the longest (batches are handed out in order); None if all are idle."""
    flight = case.flight_of(main)
    if flight is not None and flight.awaits_worker is not None:
        return next((p.pid for p in look.processes if p.ppid == main and p.worker == flight.awaits_worker), None)
    known = {pid for started in case.workers_started if started.pid == main for pid in started.pids}
    workers = {p.pid for p in look.processes if p.ppid == main and (p.role == "worker" or p.pid in known)}
    at_work = [f for f in case.flights if f.pid in workers and (f.fetching or f.phase == "start")]
    return min(at_work, key=lambda f: f.moved or f.since).pid if at_work else None


def _stays_blocked(before: Look, process: Process, thread: Thread) -> bool:
    """It did not run between the looks, and only those the kernel names can end its wait."""
    wait = thread.wait
    if wait is None or wait.kind not in BLOCKED or wait.timed or _someone_unseen(wait):
        return False
    return _never_ran(before, process, thread) and not _native_may_wake(process, thread)


def _someone_unseen(wait: Wait) -> bool:
    """The other end may be somebody who cannot be seen from here."""
    if wait.kind == "pipe-read" and wait.fd == 0:
        return True  # standard input: a person, or a program outside
    if wait.kind == "shared-lock":
        return not wait.others and not wait.target
    return wait.kind in ("pipe-read", "pipe-write", "file-lock", "child") and not wait.others and not wait.also_self


def _native_may_wake(process: Process, thread: Thread) -> bool:
    """A thread without Python may wake it: a collective's, or a library's that it waits for in native code."""
    if any("torch/distributed/" in frame.file for frame in thread.frames):
        return True
    if thread.wait is None or thread.wait.kind != "lock" or all(t.python for t in process.threads):
        return False
    top = thread.frames[0] if thread.frames else None
    if top is None or process.forked:  # a fork leaves the native threads behind
        return False
    return not (top.takes or top.file.endswith(_PYTHON_LOCKS) or _LOCK_CALLS.search(top.code))


def _never_ran(before: Look, process: Process, thread: Thread) -> bool:
    """It was not scheduled once between the two looks, so both show the same moment of it."""
    earlier = thread_again(before, process.pid, thread.tid)
    if earlier is None or earlier.cpu != thread.cpu or earlier.wait != thread.wait:
        return False
    # Stacks by signal wake the thread themselves, once a look: then the same wait and no CPU time must do.
    return earlier.switches == thread.switches or process.stacks_by == "faulthandler"


def thread_again(look: Look, pid: int, tid: int) -> Thread | None:
    """The same thread in another look."""
    process = look.process(pid)
    return next((t for t in process.threads if t.tid == tid), None) if process else None
