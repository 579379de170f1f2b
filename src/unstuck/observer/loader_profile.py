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
from .locks import is_private
from .stack_samples import Sampler, drawing_line, hot_line, lock_line, seen_stacks
from .syscalls import parse_call
from .tree import descendants
from .turns import Helped, turns

SECONDS = 2.0
OWN_SECONDS = 4.0  # of a training without a loader: steps are all that tells what is usual
LOOK_SECONDS = 0.04  # between two looks at what each process does
MIN_LOOKS = 12
MAX_SAMPLED = 2  # workers whose stacks are sampled: they do the same
PATIENCE_SECONDS = 4.0  # that py-spy may need to come to its end
MIN_RAN_SHARE = 0.02  # of the time that a thread must have run to be counted
MOSTLY = 0.5  # share of the time that makes a worker's time computing
MAX_HELPERS = 64  # processes that a training without a loader started
AT_WORK = ("running", "sleep", "file")
LOCKS = ("shared-lock", "file-lock")
_KINDS = {  # of wait, by system call
    **dict.fromkeys(("running", ""), "running"),
    **dict.fromkeys(("flock", "fcntl"), "file-lock"),
    **dict.fromkeys(("nanosleep", "clock_nanosleep"), "sleep"),
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "openat", "open", "newfstatat", "statx"), "file"),
    **dict.fromkeys(("getdents64", "fsync", "write"), "file"),
    **dict.fromkeys(("recvfrom", "recvmsg", "connect", "sendto", "poll", "ppoll", "select", "pselect6"), "socket"),
    "epoll_wait": "socket",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process got of the processors so far, in seconds."""

    ready: float = 0.0  # in which its threads were ready and had none
    by_thread: dict[int, float] = field(default_factory=dict)

    @property
    def ran(self) -> float:
        return sum(self.by_thread.values())

    @classmethod
    def of(cls, pid: int) -> Usage:
        ready, by_thread = 0.0, {}
        for tid in proc.threads(pid):
            words = proc.maybe(f"/proc/{pid}/task/{tid}/schedstat").split()
            if len(words) == 3:
                by_thread[tid] = int(words[0]) / 1e9
                ready += int(words[1]) / 1e9
        return cls(ready, by_thread)


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
    return total / proc.TICKS


@dataclass
class _Maker:
    """One process that makes batches, over the looks so far."""

    gauge: Gauge
    fetching: int = 0
    blocked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    before: Usage = field(default_factory=Usage)
    after: Usage = field(default_factory=Usage)

    @property
    def pid(self) -> int:
        return self.gauge.pid

    def makes_batch(self) -> bool:
        w = self.gauge.words
        return bool(w[at.W_FETCHING]) and (w[at.W_ROLE] != WORKER or self.gauge.phase == at.FETCH)

    def fetcher(self, looks: int, lasted: float) -> Fetcher:
        worker = int(self.gauge.words[at.W_WORKER])
        ran = [now - self.before.by_thread.get(tid, 0.0) for tid, now in self.after.by_thread.items()]
        return Fetcher(
            pid=self.pid,
            worker=worker if worker >= 0 else None,
            busy=self.fetching / looks,
            blocked=self.blocked / looks,
            cpu=max(0.0, self.after.ran - self.before.ran) / lasted,
            delayed=max(0.0, self.after.ready - self.before.ready) / lasted,
            threads=max(1, sum(seconds > MIN_RAN_SHARE * lasted for seconds in ran)),
        )


class Probe(threading.Thread):
    """Watches the training process `main` and its workers; `result` is there once it has ended well."""

    def __init__(self, main: str, workers: list[str], tree: list[int], helpers: list[int] | None = None) -> None:
        """Paths of their flight files, which are mapped anew here, and all processes of the run. `helpers`: of a
        training without a loader, those that may make its batches."""
        super().__init__(name="loader-profile", daemon=True)
        self._paths, self._tree, self._helpers = [main, *workers], tree, helpers
        self._seconds = SECONDS if helpers is None else OWN_SECONDS
        self._over = threading.Event()
        self._helped = Helped()
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
            self.join(PATIENCE_SECONDS)

    def _watch(self, main: Gauge, workers: list[Gauge]) -> Strain | None:
        makers = [_Maker(gauge) for gauge in workers or [main]]
        sampled = [*(maker.pid for maker in makers[:MAX_SAMPLED]), *(self._helpers or [])[:MAX_SAMPLED]]
        samplers = {pid: Sampler(pid, self._seconds) for pid in dict.fromkeys([*sampled, main.pid])}
        try:
            strain = self._look(main, makers)
            if strain is None:
                return None
            taken = {pid: sampler.samples(PATIENCE_SECONDS) for pid, sampler in samplers.items()}
        finally:
            for sampler in samplers.values():
                sampler.end()
        if self._helpers is not None:
            seen = [stack for pid, some in taken.items() for stack in seen_stacks(pid, some, trains=pid == main.pid)]
            return replace(strain, stacks=tuple(seen), turns=turns(main.pid, taken, self._helped))
        taken = {pid: [sample for sample in some if sample.main] for pid, some in taken.items()}
        drawing = drawing_line(taken.pop(main.pid)) if workers else None
        samples = [sample for some in taken.values() for sample in some]
        return replace(strain, hot=hot_line(samples, _mostly(makers, strain)), lock=lock_line(samples), drawing=drawing)

    def _look(self, main: Gauge, makers: list[_Maker]) -> Strain | None:
        began, busy, tree = time.monotonic(), busy_seconds(main.pid), self._used()
        before, trained = Usage.of(main.pid), _own_seconds(main.pid)
        for maker in makers:
            maker.before = Usage.of(maker.pid)
        looks = together = alone = 0
        made = at.steps_made(main.words)
        while time.monotonic() < began + self._seconds:
            if self._over.wait(LOOK_SECONDS):
                break  # the run is over: what was seen so far may do
            looks += 1
            kinds = {maker.pid: wait_kind(maker.pid) for maker in makers if maker.makes_batch()}
            for maker in makers:
                if maker.pid in kinds:
                    maker.fetching += 1
                    maker.blocked += kinds[maker.pid] in LOCKS
                    maker.kinds[kinds[maker.pid]] += 1
            if len(kinds) >= 2:
                together += 1
                alone += sum(kind not in LOCKS for kind in kinds.values()) <= 1
            if self._helpers is not None:
                self._helped.look(pid for pid in descendants(main.pid)[:MAX_HELPERS] if wait_kind(pid) in AT_WORK)
        for maker in makers:
            maker.after = Usage.of(maker.pid)
            maker.before = maker.before if maker.after.by_thread else maker.after  # it is gone
        lasted, after = time.monotonic() - began, Usage.of(main.pid)
        used = (self._used() - tree) / lasted
        if looks < MIN_LOOKS or used < 0:  # processes of the run have ended meanwhile
            return None
        return Strain(
            pid=main.pid,
            at=began,
            seconds=lasted,
            looks=looks,
            cores=allowed(main.pid),
            cpu=used,
            training=max(0.0, _own_seconds(main.pid) - trained) / lasted,
            others=max(0.0, (busy_seconds(main.pid) - busy) / lasted - used),
            delayed=max(0.0, after.ready - before.ready) / lasted,
            fetchers=tuple(maker.fetcher(looks, lasted) for maker in makers),
            together=together,
            alone=alone,
            steps=at.steps_made(main.words) - made,
        )

    def _used(self) -> float:
        """Processor seconds of the processes of the run, those of children that are gone included."""
        stats = [stat for pid in self._tree if (stat := proc.stat(pid)) is not None]
        return sum(stat.cpu + stat.children_cpu for stat in stats)


def _own_seconds(pid: int) -> float:
    stat = proc.stat(pid)
    return 0.0 if stat is None else stat.cpu


def _mostly(makers: list[_Maker], strain: Strain) -> str:
    """What they mostly wait for while they make batches; empty if they compute, be it in threads of their own."""
    busy = sum(fetcher.busy for fetcher in strain.fetchers)
    worked = sum(min(fetcher.busy, fetcher.cpu + fetcher.delayed) for fetcher in strain.fetchers)
    kinds = sum((maker.kinds for maker in makers), Counter[str]())
    del kinds["running"]
    return "" if worked >= MOSTLY * busy or not kinds else kinds.most_common(1)[0][0]


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
        return "lock" if is_private(call) else "shared-lock"
    if call.name in ("read", "write") and proc.link(f"/proc/{pid}/fd/{call.signed(0)}").startswith(
        ("socket:", "pipe:")
    ):
        return "socket"
    return _KINDS.get(call.name, "other")
