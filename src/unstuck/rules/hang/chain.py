"""Whom a stuck thread waits for, and whom that one waits for, from thread to thread through the whole process tree.

Every thread that waits points to those that could end its wait. Where these ways end, at a thread that waits for
nobody, or in a ring of threads that wait only for each other, is whoever should act.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from unstuck.model import Case, Look, Process, Thread, Wait
from unstuck.rules.hang import waiting
from unstuck.rules.hang.deadlock import awaited_worker

PEERS = ("child", "pipe-read", "pipe-write", "socket", "poll")  # waits for another process, by a descriptor
_SERVING = ("accept", "accept4")
_DEFINITE, _BUSY, _TIMED = range(3)  # ends of a chain: blocked for good, computing, waking by themselves


class Link(NamedTuple):
    process: Process
    thread: Thread

    @property
    def key(self) -> tuple[int, int]:
        return self.process.pid, self.thread.tid


Key = tuple[int, int]
Way = tuple[Link, ...]


def follow(case: Case, look: Look, start: Process) -> Way:
    """From the process whose clock stopped to the thread that stopped it, both included; empty without threads."""
    if start.main_thread is None:
        return ()
    first = Link(start, start.main_thread)
    return _Graph(case, look, first).end or _single_partners(case, look, start)


class _Graph:
    """Everybody whom the first one waits for, directly or through others."""

    def __init__(self, case: Case, look: Look, first: Link) -> None:
        self._case, self._look, self._first = case, look, first
        self._ways: dict[Key, Way] = {first.key: (first,)}  # the shortest to each, nearest first
        self._next: dict[Key, set[Key]] = {}
        pending = [first]
        for link in pending:  # which grows meanwhile
            answerers = [one for one in self._answerers(link) if one.key != link.key and not _rests(one)]
            self._next[link.key] = {one.key for one in answerers}
            for one in answerers:
                if one.key not in self._ways:
                    self._ways[one.key] = (*self._ways[link.key], one)
                    pending.append(one)

    @property
    def end(self) -> Way | None:
        """The way to the nearest end; None where two ends are as near, or where all wait in one ring."""
        if len(self._ways) == 1:
            return (self._first,)
        ends = self._unread() or self._ends() or self._asking() or self._served()
        ends.sort(key=lambda way: (_rank(way[-1]), len(way)))  # stable: the nearest stays first
        if not ends or (_rank(ends[0][-1]) != _DEFINITE and self._someone_died):
            return None  # whoever died should have acted, rather than one that computes or waits for its own things
        alike = [way for way in ends if (_rank(way[-1]), len(way)) == (_rank(ends[0][-1]), len(ends[0]))]
        return ends[0] if len({_spot(way[-1]) for way in alike}) == 1 else None

    def _ends(self) -> list[Way]:
        """One way for each group of threads that wait only for each other; a single one may wait for nobody."""
        groups: dict[Key, list[Way]] = {}
        for key, way in self._ways.items():
            reach = self._reach[key] | {key}
            if all(key in self._reach[other] for other in reach - {key}):
                groups.setdefault(min(reach), []).append(way)
        if any(self._first.key in self._reach[ways[0][-1].key] for ways in groups.values()):
            return []  # the first one is in the ring itself
        return [min(ways, key=lambda way: way[-1].thread.user_frame is None) for ways in groups.values()]

    def _unread(self) -> list[Way]:
        """The way to the last that writes into a pipe whose readers all wait, and none of them for what is in it."""
        return [way for way in self._ways.values() if unread(self._look, way[-1])][-1:]

    def _asking(self) -> list[Way]:
        """Of all who wait in one ring: those that wait for an answer by a socket, which no other wait explains."""
        ways = [] if _kind(self._first) == "socket" else self._ways.values()
        return [way for way in ways if _kind(way[-1]) == "socket" and way[-1].thread.user_frame]

    def _served(self) -> list[Way]:
        """Of all who wait in one ring, where the first one waits until others are done: those that wait for more."""
        ways = self._ways.values() if waiting.until_done(self._first.thread) else []
        return [way for way in ways if way[-1].thread.user_frame and not waiting.until_done(way[-1].thread)]

    @cached_property
    def _reach(self) -> dict[Key, set[Key]]:
        reach = {key: set(following) for key, following in self._next.items()}
        while more := [(own, new) for own in reach.values() if (new := set().union(*(reach[k] for k in own)) - own)]:
            for own, new in more:
                own |= new
        return reach

    @property
    def _someone_died(self) -> bool:
        return any(not flight.alive and flight.role != "worker" for flight in self._case.flights)

    def _answerers(self, link: Link) -> list[Link]:
        """Whoever could end this wait, as far as can be seen; nobody: the chain ends here."""
        process, thread = link
        loader = self._loader_worker(link)
        if loader is not None:
            return loader
        wait = thread.wait
        if wait is None or waiting.collective_call(thread) or waiting.reads_input(thread):
            return []
        if waiting.blocks_event_loop(thread) and waiting.awaited(thread) == waiting.FUTURE:
            return []  # its own loop should complete it
        if waiting.proxied_call(thread):
            others = [one for one in self._look.processes if not waiting.keeps_for_others(one)]
            return [one for process in others for one in _working(process) if one.thread.python]
        if wait.kind in PEERS:
            return [*self._of(wait.others), *(_working(process) if wait.also_self else ())]
        if wait.kind not in ("lock", "shared-lock"):
            return []
        near = [*_working(process), *(self._of(wait.others) if wait.kind == "shared-lock" else ())]
        if waiting.awaited(thread) == waiting.LOCK:
            name = waiting.lock_name(thread)
            return [one for one in near if one.key != link.key and waiting.holding_frame(one.thread, name)]
        died = any(died.pid == process.pid for died in self._case.thread_deaths)
        return [] if wait.kind == "lock" and died else near

    def _loader_worker(self, link: Link) -> list[Link] | None:
        """Main in its DataLoader waits for one certain worker."""
        process, thread = link
        flight = self._case.flight_of(process.pid)
        if flight is None or flight.phase != "data" or flight.fetching or thread != process.main_thread:
            return None
        if waiting.draws_from_sampler(thread):
            return []
        worker = awaited_worker(self._case, self._look, process.pid)
        return None if worker is None else self._of([worker])

    def _of(self, pids: Iterable[int]) -> list[Link]:
        return [link for pid in pids if (process := self._look.process(pid)) for link in _working(process)]


def _working(process: Process) -> list[Link]:
    """Its Python threads; of a process that shows none, the main thread."""
    threads = [t for t in process.threads if t.python and not waiting.is_housekeeping(t)]
    return [Link(process, thread) for thread in threads or process.threads[:1]]


def _rests(link: Link) -> bool:
    """A library's thread without work, or a server without requests: it needs others, nobody needs it."""
    process, thread = link
    wait = thread.wait
    if wait is not None and wait.syscall in _SERVING:
        return True
    if waiting.in_event_loop(thread) and not waiting.blocks_event_loop(thread):
        return True
    library = thread.python and thread is not process.main_thread and thread.user_frame is None
    return library and (wait is None or wait.kind not in PEERS or not (wait.others or wait.also_self))


def _kind(link: Link) -> str:
    return link.thread.wait.kind if link.thread.wait else ""


def _rank(link: Link) -> int:
    wait = link.thread.wait
    if wait is None or wait.kind in ("sleep", "stopped") or wait.timed:
        return _TIMED
    return _BUSY if wait.kind == "running" else _DEFINITE


def _spot(link: Link) -> tuple[str, int, str]:
    """Where it stands; threads that wait for one lock stand at the same place, whichever line each takes it at."""
    frame = link.thread.current_frame
    if (
        _kind(link) == "lock"
        and waiting.awaited(link.thread) == waiting.LOCK
        and (name := waiting.lock_name(link.thread))
    ):
        return name, link.process.pid, "lock"
    return (frame.file if frame else "", frame.line if frame else link.process.pid, _kind(link))


# --- pipes -------------------------------------------------------------------------------------------------------


def readers(look: Look, link: Link) -> list[Process]:
    """Who has the reading end of the full pipe that this thread writes to; nobody if it writes to none."""
    wait = link.thread.wait
    if wait is None or wait.kind != "pipe-write":
        return []
    own = [link.process] if wait.also_self else []
    return [*(process for pid in wait.others if (process := look.process(pid))), *own]


def unread(look: Look, link: Link) -> bool:
    """It writes into a full pipe, and everybody who could read it waits for something else."""
    if waiting.feeds_queue(link.thread):
        return False
    threads = [one.thread for process in readers(look, link) for one in _working(process)]
    waits = [thread.wait for thread in threads]
    return bool(waits) and all(w is not None and w.kind != "running" and not _reads(w, link) for w in waits)


def _reads(wait: Wait, link: Link) -> bool:
    written = link.thread.wait.target if link.thread.wait else ""
    if wait.kind == "poll" or (wait.kind == "pipe-read" and not wait.target.startswith("pipe:")):
        return True  # among others perhaps this one; of a socket the two ends have different names
    return wait.kind == "pipe-read" and written in wait.target


# --- where all wait in one ring ----------------------------------------------------------------------------------


def _single_partners(case: Case, look: Look, start: Process) -> Way:
    """As far as each waits for one certain other."""
    trail = [start]
    while (following := _partner(case, look, trail[-1])) is not None and following not in trail:
        trail.append(following)
    return tuple(Link(process, thread) for process in trail if (thread := stuck_thread(process)))


def _partner(case: Case, look: Look, process: Process) -> Process | None:
    flight = case.flight_of(process.pid)
    if flight is not None and flight.phase == "data" and not flight.fetching:
        if process.main_thread is not None and waiting.draws_from_sampler(process.main_thread):
            return None
        worker = awaited_worker(case, look, process.pid)
        return look.process(worker) if worker is not None else None
    thread = stuck_thread(process)
    wait = thread.wait if thread else None
    if wait is None or wait.kind not in PEERS or wait.kind == "poll" or len(wait.others) != 1:
        return None
    return look.process(wait.others[0]) if wait.kind == "child" or not wait.also_self else None


def stuck_thread(process: Process) -> Thread | None:
    """The thread that holds the process up: main, or the one main waits for inside the process."""
    main = process.main_thread
    if main is None or not waiting.waits_inside(main):
        return main
    helpers = [t for t in process.threads[1:] if t.python]
    others = [t for t in helpers if any(f.user for f in t.frames)]
    if len(others) == 1 and not any(f.user for f in main.frames):
        return others[0]  # the script is over, and the interpreter waits for its last thread
    feeders = [t for t in helpers if t.wait and t.wait.kind == "pipe-write"]
    outward = [t for t in [*others, *feeders] if t.wait and t.wait.kind not in ("lock", "unknown", "sleep")]
    return outward[0] if len(outward) == 1 else main
