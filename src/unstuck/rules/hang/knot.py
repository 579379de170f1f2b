"""Proof that a wait cannot end: the set of processes that wait only for each other, or for nobody.

Begin with every process in which no Python thread ran between the last two looks; strike out each one that
waits for somebody outside the set; repeat until nothing changes. What is left can never move again.
"""

from __future__ import annotations

import re

from unstuck.model import Case, Flight, Look, Process, Thread

BLOCKED = frozenset(("lock", "shared-lock", "file-lock", "pipe-read", "pipe-write", "child"))
_PYTHON_LOCKS = ("/threading.py", "/queue.py", "multiprocessing/synchronize.py", "concurrent/futures/_base.py")
_LOCK_CALLS = re.compile(r"\.(acquire|join|wait|result|get|put|shutdown|recv|map)\(")
_POLLS_ON = ("torch/utils/data/_utils/pin_memory.py", "tqdm/_monitor.py", "multiprocessing/resource_sharer.py")


def knotted(case: Case) -> frozenset[int]:
    """Pids of the processes that are proven stuck."""
    looks = [look for look in case.looks if look.stacks][-2:]
    if len(looks) < 2:
        return frozenset()
    before, now = looks
    waits: dict[int, frozenset[int]] = {}
    for process in now.processes:
        for_whom = _waits_for(case, before, process)
        if for_whom is not None:
            waits[process.pid] = for_whom
    while True:
        free = {pid for pid, others in waits.items() if not others <= waits.keys()}
        if not free:
            return frozenset(waits)
        for pid in free:
            del waits[pid]


def _waits_for(case: Case, before: Look, process: Process) -> frozenset[int] | None:
    """Processes that could wake this one; empty: only itself could; None: it may move on its own."""
    if process.is_python and not process.threads:
        return None
    flight = next((f for f in case.flights if f.pid == process.pid), None)
    others: set[int] = set()
    threads = [t for t in process.threads if t.python] or list(process.threads[:1])
    for thread in threads:
        if polls_on(thread):
            continue
        wait = thread.wait
        if thread is process.main_thread and flight and flight.phase == "data" and not flight.fetching:
            worker = owing_worker(case, before, process.pid)
            if worker is not None:
                others.add(worker)
                continue
        if thread is process.main_thread and flight and _has_no_work(flight, thread):
            others.add(process.ppid)  # it wakes now and then, and does nothing unless main sends it work
            continue
        if _native_may_end(process, thread):
            return None
        if wait is None or wait.kind not in BLOCKED or wait.timed or not ever_still(before, process, thread):
            return None
        if wait.kind in ("pipe-read", "file-lock", "child") and not wait.others and not wait.also_self:
            return None  # whoever is at the other end cannot be seen
        if wait.kind == "shared-lock" and not wait.others and wait.target == "":
            return None
        if wait.fd == 0 and wait.kind == "pipe-read":
            return None  # standard input: a person or a program outside
        others |= set(wait.others)
    return frozenset(others - {process.pid})


def _native_may_end(process: Process, thread: Thread) -> bool:
    """A thread without Python may wake it: a collective's, or a library's that it waits for in native code."""
    if any("torch/distributed/" in frame.file for frame in thread.frames):
        return True
    if thread.wait is None or thread.wait.kind != "lock" or all(t.python for t in process.threads):
        return False
    top = thread.frames[0] if thread.frames else None
    if top is None or process.forked:  # a fork leaves the native threads behind
        return False
    return not (top.takes or top.file.endswith(_PYTHON_LOCKS) or _LOCK_CALLS.search(top.code))


def _has_no_work(flight: Flight, thread: Thread) -> bool:
    """A DataLoader worker in its own loop, with nothing of the user's on the stack."""
    looping = any(f.function.endswith("_worker_loop") for f in thread.frames)
    return flight.role == "worker" and flight.phase == "idle" and looping and not any(f.user for f in thread.frames)


def owing_worker(case: Case, look: Look, main: int) -> int | None:
    """Pid of the worker main waits for: the one its own frame names, else the one that has been at its batch, or at
    its own start, the longest; None if all are idle."""
    owed = next((f.awaits_worker for f in case.flights if f.pid == main), None)
    if owed is not None:
        return next((p.pid for p in look.processes if p.ppid == main and p.worker == owed), None)
    known = {pid for started in case.workers_started if started.pid == main for pid in started.pids}
    workers = {p.pid for p in look.processes if p.ppid == main and (p.role == "worker" or p.pid in known)}
    at_work = [f for f in case.flights if f.pid in workers and (f.fetching or f.phase == "start")]
    return min(at_work, key=lambda f: f.moved or f.since).pid if at_work else None


def polls_on(thread: Thread) -> bool:
    """Threads of libraries that wake now and then and never release anything of the user's."""
    return any(part in frame.file for frame in thread.frames for part in _POLLS_ON)


def thread_again(look: Look, pid: int, tid: int) -> Thread | None:
    """The same thread in another look."""
    for process in look.processes:
        if process.pid == pid:
            return next((t for t in process.threads if t.tid == tid), None)
    return None


def ever_still(before: Look, process: Process, thread: Thread) -> bool:
    """It was not scheduled once between the two looks, so both show the same moment of it."""
    earlier = thread_again(before, process.pid, thread.tid)
    if earlier is None or earlier.cpu != thread.cpu or earlier.wait != thread.wait:
        return False
    # Stacks by signal wake the thread themselves, once a look: then the same wait and no processor time must do.
    return earlier.switches == thread.switches or process.stacks_by == "faulthandler"
