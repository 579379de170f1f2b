"""Looks at a run until it is clear: stuck, and why; or running, and what it does. The run is only read."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unstuck.attach.activity import activity
from unstuck.attach.blocked_for import LONGEST_SECONDS, Holdup, dated, holdups, training
from unstuck.attach.inferred import flight_of, loader_work, with_numbers
from unstuck.attach.movement import WORKING_SHARE, share_of
from unstuck.attach.target import Target
from unstuck.model import Case, Flight, Look, PathFact, Process, Thread, Wait
from unstuck.observer import proc
from unstuck.observer.flights import read_folder
from unstuck.observer.journals import by_field
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
LATER_SECONDS = 5.0  # between two looks after all of these
LOOKS_KEPT = 25
MAX_SAMPLED = 4  # processes whose time is sampled: with more ranks than that they are alike


@dataclass(frozen=True)
class Answer:
    """What was found out."""

    case: Case
    diagnosis: Diagnosis
    holdups: tuple[Holdup, ...]
    """Of each training process; the stalls of the Case are theirs."""
    moved: dict[int, str]
    """By training process: the sign by which it was seen to move; empty if none was."""
    seconds: float
    shares: dict[int, list[tuple[str, float]]] = field(default_factory=dict)
    """By training process: what its time went into over the look, the most first."""
    sampled: float = 0.0
    """Seconds over which the shares were taken."""
    note: str = ""
    ended: bool = False
    """The run ended while it was looked at."""
    interrupted: bool = False
    """The person did not want to wait longer."""

    @property
    def loud(self) -> bool:
        """A finding is more than information."""
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
        self.target, self.native = target, native
        self.seconds = SECONDS if seconds is None else seconds
        self.longest = LONGEST_SECONDS if seconds is None else seconds
        self.flight_dir = target.flight_dir if os.path.isdir(target.flight_dir or "/nowhere") else ""
        stacks = PySpy(locals="all" if every_local else "loader")
        folder = Path(self.flight_dir) if self.flight_dir else None
        self.observer = Observer(target.root, stacks=Ladder(stacks, SignalStacks(folder)), history=True)
        self.looks: list[Look] = []
        self.began = time.monotonic()
        self._machine = machine()
        self._paths: dict[tuple[int | None, str], PathFact] = {}
        self._records: dict[str, Any] = {}
        self._flights: dict[int, Flight] = {}
        """What the processes wrote about themselves, where `unstuck run` started them."""
        self._root_began = 0.0
        self._since: dict[int, tuple[tuple[object, ...], float]] = {}
        """By process: what it does for its loader, and since when the looks have found it at that."""
        self._moves: dict[int, list[tuple[object, ...]]] = {}
        """By training process: what each look found, of what shows that a training goes on."""

    def run(self, tell: Callable[[Answer], None] | None = None) -> Answer:
        """`tell` hears of every look at a run that is not explained yet."""
        samplers: dict[int, Sampler] = {}
        answer = None
        try:
            for moment in _moments(self.longest):
                time.sleep(max(0.0, self.began + moment - time.monotonic()))
                if self.looks and not self._is_alive():
                    break
                self.look()
                answer = self._answer()
                if self._is_settled(answer, moment):
                    break
                if not samplers and self.seconds >= 1.0:
                    pids = [process.pid for process in training(self.looks[-1])[:MAX_SAMPLED]]
                    samplers = {pid: Sampler(pid, self.seconds) for pid in pids}
                if tell is not None and moment >= self.seconds:
                    tell(answer)
            answer = answer or self._answer()
            if not answer.loud:
                answer = _with_shares(answer, samplers)
        except KeyboardInterrupt:
            if not self.looks:
                raise
            answer = replace(answer or self._answer(), interrupted=True)
        finally:
            for sampler in samplers.values():
                sampler.end()
        return _with_native_frames(answer) if self.native else answer

    def again(self) -> Answer:
        """One more inspection of the same run."""
        self.began = time.monotonic()
        self._moves.clear()
        self.looks = []
        return self.run()

    def look(self) -> Look:
        if self.flight_dir:
            flights, records = read_folder(self.flight_dir)
            self._records = by_field(records)
            self._flights = {flight.pid: flight for flight in flights if flight.alive}
        look = with_numbers(self.observer.look(stacks=True, flights=self._flights))
        self.looks = [*self.looks, look]
        if len(self.looks) > LOOKS_KEPT:
            del self.looks[1]  # the first tells how long it has been so
        for process in training(look):
            self._moves.setdefault(process.pid, []).append(_move(look, process))
        for process in look.processes:
            identity = loader_work(process.main_thread).identity
            if self._since.get(process.pid, (None, 0.0))[0] != identity:
                self._since[process.pid] = (identity, look.at)
        for fact in (*self.observer.paths_of(look, "polls"), *self.observer.paths_of(look, "tries")):
            self._paths[fact.pid, fact.expression] = fact
        return look

    def _answer(self) -> Answer:
        """Everything known now: the Case, the stall of each training process, and what the rules say about them."""
        case = self._case()
        alive = self._is_alive()
        held = holdups(case) if case.looks[-1].processes else ()
        by_culprit = {holdup.process.pid: holdup.stall for holdup in held}
        flights = tuple(dated(flight, by_culprit.get(flight.pid)) for flight in case.flights)
        case = replace(case, stalls=tuple(holdup.stall for holdup in held), flights=flights)
        return Answer(
            case=case,
            diagnosis=diagnose(case) if len(self.looks) > 1 and alive else Diagnosis(),
            holdups=held if alive else (),
            moved={pid: _movement(moves) for pid, moves in self._moves.items()},
            seconds=time.monotonic() - self.began,
            note=self.target.note,
            ended=not alive,
        )

    def _case(self) -> Case:
        """Still without stalls."""
        look = self.looks[-1]
        main = next(iter(training(look)), look.processes[0] if look.processes else None)
        flights = [
            self._flights.get(process.pid) or flight_of(process, look.at, self._since[process.pid][1])
            for process in look.processes
        ]
        return Case(
            command=main.command if main else (),
            cwd=proc.link(f"/proc/{main.pid}/cwd") if main else "",
            now=look.at,
            clock_offset=time.time() - time.monotonic(),
            seconds=max(0.0, look.at - main.began) if main else 0.0,
            asked=True,
            root=self.target.root,
            stdin=self.observer.stdin(),
            looks=tuple(self.looks),
            flights=tuple(flight for flight in flights if flight is not None),
            paths=tuple(self._paths.values()),
            machine=self._machine,
            **self._records,
        )

    def _is_settled(self, answer: Answer, moment: float) -> bool:
        if answer.ended or answer.loud:
            return True  # what is not proven was watched long enough: see `blocked_for`
        if moment < self.seconds or moment < LOOKS_AT[1]:
            return False
        return not any(holdup.undecided and not answer.moved.get(holdup.stall.pid) for holdup in answer.holdups)

    def _is_alive(self) -> bool:
        """The very process that was named is there, and more than an exit status that nobody has collected."""
        processes = self.looks[-1].processes
        if processes and processes[0].pid == self.target.root:  # a pid may be used again while we wait
            self._root_began = self._root_began or processes[0].began
            if abs(processes[0].began - self._root_began) >= SAME_START:
                return False
        return any(process.threads and process.threads[0].state != "Z" for process in processes)


def _moments(longest: float) -> Iterator[float]:
    """When to look, two times at least: often at first, then more and more rarely, up to the limit."""
    yield from LOOKS_AT[:2]
    last = LOOKS_AT[1]
    for moment in LOOKS_AT[2:]:
        if moment <= longest:
            last = moment
            yield last
    while last + LATER_SECONDS <= longest:
        last += LATER_SECONDS
        yield last
    if longest - last > 0.1:
        yield longest


# --- what shows that a training goes on --------------------------------------------------------------------------


def _move(look: Look, process: Process) -> tuple[object, ...]:
    """What changes from one look to the next: its activity, its loader's work, that of the worker it waits for."""
    work = loader_work(process.main_thread)
    workers = [p for p in look.processes if p.ppid == process.pid and p.role == "worker"]
    awaited = next((loader_work(p.main_thread).identity for p in workers if p.worker == work.awaits_worker), None)
    return activity(process.main_thread), work.identity if work.identified else None, awaited


def _movement(moves: list[tuple[object, ...]]) -> str:
    """How it was seen to move; empty if every look found the same."""
    activities, own, awaited = ({part for part in parts if part is not None} for parts in zip(*moves, strict=True))
    if len(awaited) > 1:
        return "the worker it waits for went on"
    if len(own) > 1:
        return "the loader went on"
    return "it went from one part of its work to another" if len(activities) > 1 else ""


def _with_shares(answer: Answer, samplers: dict[int, Sampler]) -> Answer:
    shares = {
        pid: _shares(sampler.samples(sampler.seconds + 2.0), _usual_wait(answer.case, pid))
        for pid, sampler in samplers.items()
    }
    return replace(answer, shares=shares, sampled=max((sampler.seconds for sampler in samplers.values()), default=0.0))


def _shares(samples: list[Sample], wait: Wait) -> list[tuple[str, float]]:
    """What the time went into, the most first. A sample does not show whether the line it is at computes or waits:
    `wait` is what the process did all in all."""
    counts: Counter[str] = Counter()
    for sample in (each for each in samples if each.main):
        counts[activity(Thread(0, frames=sample.frames, wait=wait))] += sample.count
    whole = sum(counts.values())
    return [(word, count / whole) for word, count in counts.most_common()] if whole else []


def _usual_wait(case: Case, pid: int) -> Wait:
    """What the main thread did while it was sampled: it computed, or waited as the last look found it."""
    process = case.looks[-1].process(pid)
    thread = process.main_thread if process else None
    if (share_of(case.looks, pid) or 0.0) >= WORKING_SHARE or thread is None or thread.wait is None:
        return Wait("running")
    return Wait("other") if thread.wait.kind == "unknown" else thread.wait


def _with_native_frames(answer: Answer) -> Answer:
    """One more look, with native frames: it stops the processes for some milliseconds each."""
    taken = PySpy(native=True).take([holdup.process.pid for holdup in answer.holdups])
    frames = {(pid, thread.tid): thread.native for pid, stacks in taken.items() for thread in stacks.threads}
    *before, last = answer.case.looks
    processes = tuple(
        replace(p, threads=tuple(replace(t, native=frames.get((p.pid, t.tid)) or t.native) for t in p.threads))
        for p in last.processes
    )
    return replace(answer, case=replace(answer.case, looks=(*before, replace(last, processes=processes))))
