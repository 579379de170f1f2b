"""Looks at a run until it is clear: stuck, and why; or running, and what it does. The run is only read."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.attach.activity import activity
from unstuck.attach.inferred import flight_of, seat_of, with_seats
from unstuck.attach.motion import AT_WORK, share_of
from unstuck.attach.standing import LONGEST, Standing, dated, standings, training
from unstuck.attach.target import Target
from unstuck.model import Case, Flight, Look, PathFact, Process, Thread, Times, Wait
from unstuck.observer import proc
from unstuck.observer.look import Observer
from unstuck.observer.signal_stacks import SignalStacks
from unstuck.observer.stack_samples import Sample, Sampler
from unstuck.observer.stacks import Ladder, PySpy
from unstuck.observer.tree import SAME_START
from unstuck.rules.diagnose import Diagnosis, diagnose
from unstuck.supervise.evidence import machine

SECONDS = 3.0
LOOKS_AT = (
    0.0, 0.12, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.2, 11.2, 12.5, 14.0, 16.0, 18.0, 20.0,
    22.5, 25.0, 27.5, 30.5,
)  # fmt: skip
LATER = 5.0
KEPT = 25
SAMPLED = 4
"""Processes whose time is sampled: with more ranks than that they are alike."""


@dataclass(frozen=True)
class Answer:
    """What was found out."""

    case: Case
    diagnosis: Diagnosis
    standings: tuple[Standing, ...]
    shares: dict[int, list[tuple[str, float]]]
    """By training process: what its time went into over the look, the most first."""
    moved: dict[int, str]
    """By training process: the sign by which it was seen to move; empty if none was."""
    seconds: float
    sampled: float = 0.0
    """Seconds over which the shares were taken."""
    note: str = ""
    ended: bool = False
    """The run ended while it was looked at."""
    interrupted: bool = False
    """The person did not want to wait longer."""

    @property
    def loud(self) -> bool:
        return any(finding.severity != "info" for finding in self.diagnosis.findings)


class Inspection:
    def __init__(
        self,
        target: Target,
        *,
        seconds: float | None = None,
        native: bool = False,
        every_local: bool = False,
    ) -> None:
        self.target = target
        self.seconds = SECONDS if seconds is None else seconds
        self.longest = LONGEST if seconds is None else seconds
        self.native = native
        self.flight_dir = target.flight_dir if os.path.isdir(target.flight_dir or "/nowhere") else ""
        stacks = PySpy(locals="all" if every_local else "loader")
        folder = Path(self.flight_dir) if self.flight_dir else None
        self.observer = Observer(target.root, stacks=Ladder(stacks, SignalStacks(folder)), history=True)
        self.looks: list[Look] = []
        self.began = time.monotonic()
        self._paths: dict[tuple[int | None, str], PathFact] = {}
        self._said: dict[str, Any] = {}
        self._flights: dict[int, Flight] = {}
        self._root_began = 0.0
        self._since: dict[int, tuple[tuple[object, ...], float]] = {}
        self._signs: dict[int, list[tuple[object, ...]]] = {}

    def run(self, tell: Callable[[Answer], None] | None = None) -> Answer:
        """`tell` hears of every look at a run that is not explained yet."""
        samplers: dict[int, Sampler] = {}
        answer = None
        try:
            for moment in _moments(self.longest):
                if not self._wait_until(moment):
                    break
                self.look()
                answer = self._answer(samplers={})
                if self._settled(answer, moment):
                    break
                if not samplers and self.seconds >= 1.0:
                    pids = [process.pid for process in training(self.looks[-1])[:SAMPLED]]
                    samplers = {pid: Sampler(pid, self.seconds) for pid in pids}
                if tell is not None and moment >= self.seconds:
                    tell(answer)
            if answer is None or not answer.loud:
                answer = self._answer(samplers)
        except KeyboardInterrupt:
            if not self.looks:
                raise
            answer = replace(self._answer(samplers={}), interrupted=True)
        finally:
            for sampler in samplers.values():
                sampler.end()
        return self._natively(answer) if self.native else answer

    def again(self) -> Answer:
        """One more inspection of the same run."""
        self.began = time.monotonic()
        self._signs.clear()
        self.looks = []
        return self.run()

    def look(self) -> Look:
        self._flights = self._recorded()
        look = with_seats(self.observer.look(stacks=True, flights=self._flights))
        self.looks = [*self.looks, look]
        if len(self.looks) > KEPT:
            del self.looks[1]  # the first tells how long it has been so
        for process in training(look):
            self._signs.setdefault(process.pid, []).append(self._sign(look, process))
        for process in look.processes:
            sign = seat_of(process.main_thread).sign
            if self._since.get(process.pid, (None, 0.0))[0] != sign:
                self._since[process.pid] = (sign, look.at)
        for fact in (*self.observer.polled_paths(look), *self.observer.tried_paths(look)):
            self._paths[fact.pid, fact.expression] = fact
        return look

    # --- the Case ----------------------------------------------------------------------------------------

    def _recorded(self) -> dict[int, Flight]:
        """What the processes wrote of themselves, where `unstuck run` started them."""
        if not self.flight_dir:
            return {}
        from unstuck.observer.flights import read_folder
        from unstuck.observer.journals import by_field

        flights, records = read_folder(self.flight_dir)
        self._said = by_field(records)
        return {flight.pid: flight for flight in flights if flight.alive}

    def case(self) -> tuple[Case, tuple[Standing, ...]]:
        """Everything known now, and the standing of each training process that its stalls are of."""
        look = self.looks[-1]
        root = look.processes[0] if look.processes else None
        main = next(iter(training(look)), root)
        flights = [
            self._flights.get(process.pid) or flight_of(process, look.at, self._since[process.pid][1])
            for process in look.processes
        ]
        case = Case(
            command=main.command if main else (),
            cwd=proc.link(f"/proc/{main.pid}/cwd") if main else "",
            now=look.at,
            clock_offset=time.time() - time.monotonic(),
            seconds=max(0.0, look.at - main.began) if main else 0.0,
            asked=True,
            root=self.target.root,
            stdin=self.observer.stdin(),
            times=Times(),
            looks=tuple(self.looks),
            flights=tuple(flight for flight in flights if flight is not None),
            paths=tuple(self._paths.values()),
            machine=machine(),
            **self._said,
        )
        found = standings(case) if look.processes else ()
        held = {standing.process.pid: standing.stall for standing in found}
        dates = tuple(dated(flight, held.get(flight.pid)) for flight in case.flights)
        return replace(case, stalls=tuple(standing.stall for standing in found), flights=dates), found

    def _answer(self, samplers: dict[int, Sampler]) -> Answer:
        case, found = self.case()
        shares = {
            pid: shares_of(sampler.samples(sampler.seconds + 2.0), _wait_of(case, pid))
            for pid, sampler in samplers.items()
        }
        alive = self._lives()
        return Answer(
            case=case,
            diagnosis=diagnose(case) if len(self.looks) > 1 and alive else Diagnosis(),
            standings=found if alive else (),
            shares=shares,
            moved={pid: _movement(signs) for pid, signs in self._signs.items()},
            seconds=time.monotonic() - self.began,
            sampled=max((sampler.seconds for sampler in samplers.values()), default=0.0),
            note=self.target.note,
            ended=not alive,
        )

    def _sign(self, look: Look, process: Process) -> tuple[object, ...]:
        """What shows that a training goes on, from one look to the next."""
        seat = seat_of(process.main_thread)
        workers = [p for p in look.processes if p.ppid == process.pid and p.role == "worker"]
        owing = next((seat_of(p.main_thread).sign for p in workers if p.worker == seat.owed_by), None)
        return activity(process, process.main_thread).word, seat.sign if seat.identified else None, owing

    def _settled(self, answer: Answer, moment: float) -> bool:
        if answer.ended or answer.loud:
            return True  # what is not proven was watched long enough: see `standing`
        if moment < self.seconds or moment < LOOKS_AT[1]:
            return False
        return not any(s.undecided and not answer.moved.get(s.stall.pid) for s in answer.standings)

    def _lives(self) -> bool:
        """The very process that was asked about is there, and more than an exit status that nobody has collected."""
        processes = self.looks[-1].processes
        same = not processes or processes[0].pid != self.target.root or self._is_root(processes[0])
        return same and any(process.threads and process.threads[0].state != "Z" for process in processes)

    def _is_root(self, process: Process) -> bool:
        """A pid may be used again while we wait."""
        self._root_began = self._root_began or process.began
        return abs(process.began - self._root_began) < SAME_START

    def _wait_until(self, moment: float) -> bool:
        time.sleep(max(0.0, self.began + moment - time.monotonic()))
        return not self.looks or self._lives()

    def _natively(self, answer: Answer) -> Answer:
        """One more look, with native frames: it stops the processes for some milliseconds each."""
        taken = PySpy(native=True).take([s.process.pid for s in answer.standings])
        frames = {pid: {t.tid: t.native for t in stacks.threads} for pid, stacks in taken.items()}
        *before, last = answer.case.looks
        processes = tuple(
            replace(p, threads=tuple(_with_native(t, frames.get(p.pid, {}).get(t.tid, ())) for t in p.threads))
            for p in last.processes
        )
        return replace(answer, case=replace(answer.case, looks=(*before, replace(last, processes=processes))))


def _wait_of(case: Case, pid: int) -> Wait:
    """What the main thread did while it was sampled: it computed, or waited as the last look found it."""
    process = next((p for p in case.looks[-1].processes if p.pid == pid), None)
    thread = process.main_thread if process else None
    if (share_of(case.looks, pid) or 0.0) >= AT_WORK or thread is None or thread.wait is None:
        return Wait("running")
    return thread.wait


def _with_native(thread: Thread, native: tuple[str, ...]) -> Thread:
    return replace(thread, native=native) if native else thread


def _moments(longest: float) -> list[float]:
    """When to look: often at first, then ever more rarely, up to the limit."""
    moments = [moment for moment in LOOKS_AT if moment <= longest]
    while moments[-1] + LATER <= longest:
        moments.append(moments[-1] + LATER)
    if longest - moments[-1] > 0.1:
        moments.append(longest)
    return moments if len(moments) > 1 else [*moments, LOOKS_AT[1]]


def _movement(signs: list[tuple[object, ...]]) -> str:
    """How it was seen to move; empty if every look found the same."""
    words = [sign[0] for sign in signs]
    if len({sign[2] for sign in signs if sign[2] is not None}) > 1:
        return "the worker it waits for went on"
    if len({sign[1] for sign in signs if sign[1] is not None}) > 1:
        return "the loader went on"
    return "it went from one part of its work to another" if len(set(words)) > 1 else ""


def shares_of(samples: list[Sample], wait: Wait | None = None) -> list[tuple[str, float]]:
    """What the time went into, the most first. A sample does not show whether the line it is at computes or waits:
    `wait` is what the process did all in all."""
    counts: Counter[str] = Counter()
    for sample in samples:
        counts[activity(None, Thread(0, frames=sample.frames, wait=wait)).word] += sample.count
    whole = sum(counts.values())
    return [(word, count / whole) for word, count in counts.most_common()] if whole else []
