"""One look at a process tree from outside: kernel facts of every thread, and Python stacks where they are wanted."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from unstuck.model import Flight, Look, PathFact, Process, Role, Thread, Wait

from . import proc
from .descriptors import Descriptors, is_device, stdin_kind
from .locks import file_locks
from .paths import path_fact
from .proc import Trouble
from .signal_stacks import SignalStacks
from .sockets import Sockets
from .source import Source
from .stacks import Ladder, PySpy, Stacks, StackTaker, own_frames
from .threads import ThreadReading, match_threads, processor_clock, read_threads
from .tree import SAME_START, Member, Tree, by_stack, rank_in, roles, world_in
from .waits import Waits, with_frames

_IO_BYTES = re.compile(r"^[rw]char: (\d+)", re.MULTILINE)
_MAX_OPEN_FILES = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)
Readings = Mapping[int, tuple[ThreadReading, ...]]
Pulse = tuple[tuple[int, int, float], ...]


class Observer:
    """Looks at the tree under `root`, again and again; remembers orphans, roles, sources and stacks between looks.

    `history`: also read what the kernel knows of the time before the first look, for a run nobody watched till now.
    """

    def __init__(
        self,
        root: int,
        *,
        stacks: StackTaker | None = None,
        flight_dir: Path | None = None,
        history: bool = False,
    ) -> None:
        self.root = root
        self._history = history
        self._taken: dict[int, tuple[Pulse, Stacks]] = {}
        self._tree = Tree(root)
        self._stacks = stacks or Ladder(PySpy(), SignalStacks(flight_dir))
        self._source = Source()
        self._ranks: dict[tuple[int, ...], tuple[int | None, int | None]] = {}
        self._roles: dict[tuple[int, int], Role] = {}

    def look(
        self,
        *,
        stacks: bool = True,
        only: Collection[int] | None = None,
        flights: Mapping[int, Flight] | None = None,
    ) -> Look:
        """`only`: processes whose Python stacks are wanted, all if None. `flights`: what they wrote of themselves."""
        at = time.monotonic()
        trouble = Trouble()
        flights = flights or {}
        starts = {pid: start for pid, flight in flights.items() if (start := flight.started or flight.began)}
        members = self._tree.members(trouble, starts)
        descriptors = Descriptors(member.pid for member in members)
        waits = Waits(members, descriptors, Sockets())
        clock = cache(processor_clock) if self._history else None
        readings = {member.pid: read_threads(member.pid, trouble, clock) for member in members}
        explained = {
            (pid, thread.tid): waits.explain(pid, thread) for pid, threads in readings.items() for thread in threads
        }
        taken = self._take_stacks(members, only, trouble, readings) if stacks else {}
        ranks = {member.pid: self._rank_and_world(member) for member in members}
        by_command = roles(self.root, members, {pid: rank for pid, (rank, _) in ranks.items()})
        processes = []
        for member in members:
            pid = member.pid
            threads = self._threads(pid, readings[pid], explained, taken.get(pid, Stacks()))
            flight = _flight_of(member, flights)
            process = _process(member, threads, taken.get(pid, Stacks()), flight, descriptors)
            rank, world = ranks[pid]
            processes.append(
                replace(
                    process,
                    role=self._settled_role(member, by_command[pid], threads, flight),
                    rank=rank if process.rank is None else process.rank,
                    world=world,
                    quiet=_quiet(pid, descriptors) if self._history else None,
                )
            )
        return Look(at, tuple(processes), file_locks(waits.holdings), stacks, trouble.lines())

    def path_fact(self, path: str) -> PathFact:
        """Try a path as the target would, relative ones from its working directory."""
        folder = proc.link(f"/proc/{self.root}/cwd")
        pids = [member.pid for member in self._tree.members(Trouble())]
        return path_fact(os.path.join(folder, path), Descriptors(pids))

    def paths_of(self, look: Look, field: Literal["polls", "tries"]) -> tuple[PathFact, ...]:
        """Facts about the paths that loops keep testing for (`Frame.polls`), or keep trying in vain (`Frame.tries`),
        where their value can be known."""
        facts: dict[tuple[int, str], PathFact] = {}
        for process in look.processes:
            for frame in (frame for thread in process.threads for frame in thread.frames):
                expression = frame.polls if field == "polls" else frame.tries if frame.user else ""
                path = self._source.stated_path(frame, expression) if expression else None
                if path is None and expression.isidentifier():
                    path = PySpy().local(process.pid, frame, expression)
                if path is not None and "://" not in path:  # a URL is no path
                    fact = self.path_fact(os.path.join(proc.link(f"/proc/{process.pid}/cwd"), path))
                    facts.setdefault((process.pid, path), replace(fact, expression=expression, pid=process.pid))
        return tuple(facts.values())

    def stdin(self) -> str:
        """What standard input of the root is: terminal, pipe, file, null, socket or closed."""
        return stdin_kind(self.root)

    def _take_stacks(
        self, members: tuple[Member, ...], only: Collection[int] | None, trouble: Trouble, readings: Readings
    ) -> Mapping[int, Stacks]:
        """A process in which nothing ran since its stacks were last taken still has the same: it is not read again."""
        pids = [
            member.pid
            for member in members
            if member.is_python and member.stat.state != "Z" and (only is None or member.pid in only)
        ]
        pulses = {pid: _pulse(readings[pid]) for pid in pids}
        known = {pid: self._taken[pid] for pid in pids if pid in self._taken}
        same = {pid: stacks for pid, (pulse, stacks) in known.items() if pulse and pulse == pulses[pid]}
        fresh = self._stacks.take([pid for pid in pids if pid not in same])
        taken = {pid: same[pid] if pid in same else fresh[pid] for pid in pids}
        self._taken = {pid: (pulses[pid], stacks) for pid, stacks in taken.items() if stacks.threads}
        for pid, stacks in taken.items():
            if "Permission denied" in stacks.missing:
                trouble.note(
                    "ptrace",
                    f"py-spy may not look into process {pid} (permission denied): run as its owner or as root, "
                    "or allow it with `sysctl kernel.yama.ptrace_scope=0` (in a container: --cap-add SYS_PTRACE)",
                )
            elif stacks.missing and not stacks.threads and proc.alive(pid):
                trouble.note(stacks.missing, f"no Python stacks of process {pid}: {stacks.missing}")
        return taken

    def _threads(
        self,
        pid: int,
        readings: tuple[ThreadReading, ...],
        explained: Mapping[tuple[int, int], Wait | None],
        taken: Stacks,
    ) -> tuple[Thread, ...]:
        python = match_threads(pid, readings, taken.threads)
        folder = proc.link(f"/proc/{pid}/cwd") if python else ""
        seen = {}
        for tid, known in python.items():  # with a negative number: begun since, or like another
            frames = self._source.annotate(own_frames(known.frames), folder)
            seen[tid] = Thread(tid=max(tid, 0), name=known.name, python=True, frames=frames, native=known.native)
        threads = []
        for reading in readings:
            thread = seen.pop(reading.tid, None) or Thread(reading.tid)
            threads.append(
                replace(
                    thread,
                    name=thread.name or reading.name,
                    state=reading.state,
                    cpu=reading.cpu,
                    switches=reading.switches,
                    idle=reading.idle,
                    wait=with_frames(explained[pid, reading.tid], thread.frames),
                )
            )
        return (*threads, *seen.values())

    def _settled_role(self, member: Member, role: Role, threads: tuple[Thread, ...], flight: Flight | None) -> Role:
        """What the process wrote of itself, else what its stack showed once, else what its command line says."""
        if flight is not None and flight.role != "unknown":
            return flight.role
        if role != "unknown":
            return role
        seen = by_stack(threads)
        if seen is not None:
            self._roles[member.key] = seen
        return self._roles.get(member.key, role)

    def _rank_and_world(self, member: Member) -> tuple[int | None, int | None]:
        """From its environment, which an exec changes, and which is empty while an exec is under way."""
        key = (*member.key, *member.stat.layout)
        if key not in self._ranks and member.is_python:
            environment = proc.environment(member.pid)
            if environment:
                self._ranks[key] = rank_in(environment), world_in(environment)
        return self._ranks.get(key, (None, None))


def _process(
    member: Member, threads: tuple[Thread, ...], taken: Stacks, flight: Flight | None, descriptors: Descriptors
) -> Process:
    """Without what the look before has to be known for."""
    pages = proc.maybe(f"/proc/{member.pid}/statm").split()
    fds = descriptors.of(member.pid)
    limit = _MAX_OPEN_FILES.search(proc.maybe(f"/proc/{member.pid}/limits"))
    return Process(
        pid=member.pid,
        ppid=member.ppid,
        began=member.stat.started / proc.TICKS,
        command=member.command,
        is_python=member.is_python,
        forked=member.forked or (flight is not None and flight.forked),
        worker=flight.worker if flight else None,
        rank=flight.rank if flight else None,
        threads=threads,
        stacks_by=taken.by,
        stacks_missing=taken.missing,
        recorded=flight is not None,
        rss=int(pages[1]) * proc.PAGE if len(pages) > 1 else 0,
        io_bytes=sum(int(count) for count in _IO_BYTES.findall(proc.maybe(f"/proc/{member.pid}/io"))),
        children_cpu=member.stat.children_cpu,
        open_files=None if fds is None else len(fds),
        open_files_limit=int(limit[1]) if limit else None,
        device=any(is_device(target) for target in (fds or {}).values()),
    )


def _pulse(readings: tuple[ThreadReading, ...]) -> Pulse:
    """What changes whenever a thread runs; empty while one does."""
    if any(reading.state == "R" for reading in readings):
        return ()
    return tuple((reading.tid, reading.switches, reading.cpu) for reading in readings)


def _flight_of(member: Member, flights: Mapping[int, Flight]) -> Flight | None:
    """A pid may be used twice: the start must agree too, where the file has it."""
    flight = flights.get(member.pid)
    start = (flight.started or flight.began) if flight else 0.0
    return None if start and abs(start - member.stat.started / proc.TICKS) > SAME_START else flight


def _quiet(pid: int, descriptors: Descriptors) -> float | None:
    """Seconds since anybody wrote to where its output goes: a file, a pipe, a terminal. None: not known.

    Files of a network mount are not touched: stat could block as it may block the target."""
    written = []
    for fd in (1, 2):
        target = descriptors.target(pid, fd)
        if not target or target == "/dev/null" or descriptors.remote(pid, fd):
            continue
        try:
            written.append(os.stat(f"/proc/{pid}/fd/{fd}").st_mtime)
        except OSError:
            continue
    return max(0.0, time.time() - max(written)) if written else None
