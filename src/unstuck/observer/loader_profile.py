"""Watches for some seconds the processes that make a training's batches: what they do, where, and what holds them up.

In a thread of its own; it reads /proc and the flight files, and lets py-spy sample stacks, which only reads too.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace

from unstuck.model import Fetcher, Strain
from unstuck.observer.gauge import WORKER, Gauge
from unstuck.recorder import layout as at
from unstuck.recorder.cores import allowed

from . import proc
from .stack_samples import Sampler, drawing_line, hot_line, lock_line
from .syscalls import parse_call

SECONDS = 2.0
EVERY = 0.04
"""Seconds between two looks at what each process does."""
ENOUGH = 12
SAMPLED = 2
"""Workers whose stacks are sampled: they do the same."""
PATIENCE = 4.0
"""Seconds that py-spy may need to come to its end."""
RAN = 0.02
"""Share of the time that a thread must have run to be counted."""
LOCKS = ("shared-lock", "file-lock")
PRIVATE = 128
"""Flag of a futex that no other process can see."""
_FILES = ("read", "pread64", "readv", "preadv", "openat", "open", "newfstatat", "statx", "getdents64", "fsync", "write")
_SOCKETS = ("recvfrom", "recvmsg", "connect", "sendto", "poll", "ppoll", "select", "pselect6", "epoll_wait")


@dataclass
class _Seen:
    gauge: Gauge
    fetching: int = 0
    blocked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    before: tuple[float, float, dict[int, float]] = (0.0, 0.0, {})
    after: tuple[float, float, dict[int, float]] = (0.0, 0.0, {})

    @property
    def pid(self) -> int:
        return self.gauge.pid

    def makes_batch(self) -> bool:
        w = self.gauge.words
        return bool(w[at.W_FETCHING]) and (w[at.W_ROLE] != WORKER or self.gauge.phase == at.FETCH)


class Probe(threading.Thread):
    """Watches the training process `main` and its workers; `result` is there once it has ended well."""

    def __init__(self, main: str, workers: list[str], tree: list[int]) -> None:
        """Paths of their flight files, which are mapped anew here, and all processes of the run."""
        super().__init__(name="strain", daemon=True)
        self._paths, self._tree = [main, *workers], tree
        self._over = threading.Event()
        self.result: Strain | None = None
        self.fault: Exception | None = None

    def run(self) -> None:
        gauges = [gauge for path in self._paths if (gauge := Gauge.open(path)) is not None]
        try:
            if gauges and gauges[0].path == self._paths[0]:
                self.result = self._watch(gauges[0], gauges[1:])
        except Exception as fault:
            self.fault = fault
        finally:
            for gauge in gauges:
                gauge.close()

    def stop(self) -> None:
        """Come to an end, and leave nothing running."""
        self._over.set()
        if self.ident is not None:
            self.join(PATIENCE)

    def _watch(self, main: Gauge, workers: list[Gauge]) -> Strain | None:
        seen = [_Seen(gauge) for gauge in workers] or [_Seen(main)]
        samplers = {each.pid: Sampler(each.pid, SECONDS) for each in seen[:SAMPLED]}
        if workers:
            samplers[main.pid] = Sampler(main.pid, SECONDS)
        try:
            strain = self._look(main, seen)
            taken = {} if strain is None else {pid: each.samples(PATIENCE) for pid, each in samplers.items()}
        finally:
            for sampler in samplers.values():
                sampler.end()
        if strain is None:
            return None
        drawing = drawing_line(taken.pop(main.pid)) if workers else None
        samples = [sample for each in taken.values() for sample in each]
        hot, lock = hot_line(samples, _mostly(seen, strain)), lock_line(samples)
        return replace(strain, hot=hot, lock=lock, drawing=drawing)

    def _look(self, main: Gauge, seen: list[_Seen]) -> Strain | None:
        began, busy, tree = time.monotonic(), busy_seconds(main.pid), self._used()
        before, trained = delays(main.pid), _own(main.pid)
        for each in seen:
            each.before = delays(each.pid)
        looks = together = alone = 0
        while time.monotonic() < began + SECONDS:
            if self._over.wait(EVERY):
                break  # the run is over: what was seen so far may do
            looks += 1
            kinds = {each.pid: wait_kind(each.pid) for each in seen if each.makes_batch()}
            for each in seen:
                kind = kinds.get(each.pid)
                each.fetching += kind is not None
                each.blocked += kind in LOCKS
                if kind is not None:
                    each.kinds[kind] += 1
            if len(kinds) >= 2:
                together += 1
                alone += sum(kind not in LOCKS for kind in kinds.values()) <= 1
        for each in seen:
            each.after = delays(each.pid)
            each.before = each.before if each.after[2] else each.after  # it is gone
        if looks < ENOUGH:
            return None
        lasted, after = time.monotonic() - began, delays(main.pid)
        used = (self._used() - tree) / lasted
        if used < 0:  # processes of the run have ended meanwhile
            return None
        return Strain(
            pid=main.pid,
            at=began,
            seconds=lasted,
            looks=looks,
            cores=allowed(main.pid),
            cpu=used,
            training=max(0.0, _own(main.pid) - trained) / lasted,
            others=max(0.0, (busy_seconds(main.pid) - busy) / lasted - used),
            delayed=max(0.0, after[1] - before[1]) / lasted,
            fetchers=tuple(_fetcher(each, looks, lasted) for each in seen),
            together=together,
            alone=alone,
        )

    def _used(self) -> float:
        """Processor seconds of the processes of the run, those of children that are gone included."""
        found = [stat for pid in self._tree if (stat := proc.stat(pid)) is not None]
        return sum(stat.cpu + stat.children_cpu for stat in found)


def _own(pid: int) -> float:
    stat = proc.stat(pid)
    return 0.0 if stat is None else stat.cpu


def _fetcher(seen: _Seen, looks: int, lasted: float) -> Fetcher:
    worker = int(seen.gauge.words[at.W_WORKER])
    ran = [now - seen.before[2].get(tid, 0.0) for tid, now in seen.after[2].items()]
    return Fetcher(
        pid=seen.pid,
        worker=worker if worker >= 0 else None,
        busy=seen.fetching / max(1, looks),
        blocked=seen.blocked / max(1, looks),
        cpu=max(0.0, seen.after[0] - seen.before[0]) / lasted,
        delayed=max(0.0, seen.after[1] - seen.before[1]) / lasted,
        threads=max(1, sum(each > RAN * lasted for each in ran)),
    )


def _mostly(seen: list[_Seen], strain: Strain) -> str:
    """What they mostly wait for while they make batches; empty if they compute, be it in threads of their own."""
    busy = sum(fetcher.busy for fetcher in strain.fetchers)
    worked = sum(min(fetcher.busy, fetcher.cpu + fetcher.delayed) for fetcher in strain.fetchers)
    kinds = sum((each.kinds for each in seen), Counter[str]())
    del kinds["running"]
    if worked >= 0.5 * busy or not kinds:
        return ""
    return kinds.most_common(1)[0][0]


def wait_kind(pid: int) -> str:
    """What the main thread of a process waits for, in a word; "running" where it does not wait."""
    stat = proc.stat(pid)
    if stat is None or stat.state == "R":
        return "running"
    if stat.state == "D":
        return "file"
    try:
        call = parse_call(proc.brief(f"/proc/{pid}/syscall"))
    except (OSError, ValueError):
        return "unknown"
    if call.name.startswith("futex"):
        return "lock" if call.args[1] & PRIVATE else "shared-lock"
    if call.name in ("flock", "fcntl"):
        return "file-lock"
    if call.name in ("nanosleep", "clock_nanosleep"):
        return "sleep"
    if call.name in _FILES:
        target = proc.link(f"/proc/{pid}/fd/{call.signed(0)}") if call.name in ("read", "write") else ""
        return "socket" if target.startswith(("socket:", "pipe:")) else "file"
    if call.name in _SOCKETS:
        return "socket"
    return "running" if call.name in ("running", "") else "other"


TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds(pid: int) -> float:
    """Seconds that the processors it may run on have been busy since the machine was started, with anything."""
    try:
        mine = {f"cpu{number}" for number in os.sched_getaffinity(pid)}
    except OSError:
        return 0.0
    total = 0
    for line in proc.maybe("/proc/stat").splitlines():
        name, *fields = line.split()
        if name in mine:
            user, nice, system, _idle, _iowait, irq, soft, steal = (int(field) for field in fields[:8])
            total += user + nice + system + irq + soft + steal
    return total / TICKS


def delays(pid: int) -> tuple[float, float, dict[int, float]]:
    """Of a process: processor seconds, seconds its threads were ready without one, and the former by thread."""
    ran, ready, by_thread = 0.0, 0.0, {}
    try:
        tids = proc.numbers(f"/proc/{pid}/task")
    except OSError:
        return 0.0, 0.0, {}
    for tid in tids:
        words = proc.maybe(f"/proc/{pid}/task/{tid}/schedstat").split()
        if len(words) == 3:
            by_thread[tid] = int(words[0]) / 1e9
            ran += by_thread[tid]
            ready += int(words[1]) / 1e9
    return ran, ready, by_thread
