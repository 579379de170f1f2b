"""The standstill a hang rule decides on: which thread is really stuck, and whether that is proven or only long.

From the process whose clock stopped the trail leads on: main waits for a worker, a parent for its child, a
reader for its writer, until a thread is reached that waits for none of these. That one is the culprit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from unstuck.model import Case, Finding, Fix, Flight, Frame, Look, Process, SeenBy, Severity, Stall, Thread, Where
from unstuck.rules.hang import waiting
from unstuck.rules.hang.chain import Link, Way, follow
from unstuck.rules.hang.deadlock import deadlocked
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, seconds, who

LOOK_BEFORE_SECONDS = 0.5  # a look this much older than the stall still shows it: the clock is read now and then
HEARD = 2  # times between looks that something was read or written, after which it was no accident


@dataclass(frozen=True)
class Standstill:
    """One stopped clock, followed to the thread that stopped it."""

    case: Case
    stall: Stall
    look: Look
    process: Process
    thread: Thread
    way: Way
    """From the process whose clock stopped to the culprit, both included."""

    @property
    def trail(self) -> tuple[Process, ...]:
        return tuple({link.process.pid: link.process for link in self.way}.values())

    @property
    def waiting_for_it(self) -> list[str]:
        """How the stopped clock hangs on the culprit, one line for each that waits; a DataLoader's wait is plain."""
        behind = [link for link in self.way[:-1] if self.process.role != "worker" and link.thread.user_frame]
        return [f"{named(link)} waits at {place(link.thread.user_frame)}{_wait_word(link)}" for link in behind[-4:]]

    @property
    def who(self) -> str:
        """The process; and which of its threads, if it is not the main one."""
        return named(Link(self.process, self.thread))

    @property
    def flight(self) -> Flight | None:
        return self.case.flight_of(self.process.pid)

    @property
    def kind(self) -> str:
        return self.thread.wait.kind if self.thread.wait else "unknown"

    @property
    def sampling(self) -> Flight | None:
        """The culprit's flight if it fetches a sample, collates a batch or draws from the sampler, in any process."""
        flight = self.flight
        if flight is None or self.thread != self.process.main_thread:
            return None
        return flight if flight.fetching or waiting.draws_from_sampler(self.thread) else None

    @property
    def frame(self) -> Frame | None:
        """The innermost frame of the user's own code, else that of the process waiting for it, else any."""
        users = (self.thread.user_frame, *(process.user_frame for process in reversed(self.trail)))
        return next((f for f in (*users, *self.thread.frames) if f), None)

    @property
    def others(self) -> list[Process]:
        """Processes at the other end of its wait, as far as they can be seen."""
        pids = self.thread.wait.others if self.thread.wait else ()
        return [process for pid in pids if (process := self.look.process(pid))]

    @property
    def proven(self) -> bool:
        """Nobody who could end this wait can ever run again: two looks, and not one of them was scheduled."""
        return self.stall.standing >= self.case.times.proven and self.process.pid in deadlocked(self.case)

    @property
    def long(self) -> bool:
        """By the clock alone: stood, and nothing else moved, for many times longer than ever before."""
        times, stall = self.case.times, self.stall
        if not (stall.seams or self.case.asked or (self.case.interrupted and not self._is_heard())):
            return False
        limit = max(times.silent, times.silent_ratio * stall.pace.longest)
        return stall.lasts(limit) or self.asked

    def _is_heard(self) -> bool:
        """The run reads or writes again and again: a program of an own kind, that says how far it is."""
        looks = [look for look in self.case.looks if look.at >= self.stall.since]
        known = [process.io_bytes for look in looks if (process := look.process(self.stall.pid)) is not None]
        return sum(before != after for before, after in pairwise(known)) >= HEARD

    @property
    def asked(self) -> bool:
        return _asked(self.case, self.stall)

    @property
    def certain(self) -> bool:
        return self.proven or self.long

    @property
    def confidence(self) -> float:
        if self.proven:
            return 0.97
        return 0.75 if self.asked and self.stall.standing < self.case.times.silent else 0.85

    @property
    def lasting(self) -> str:
        """How long it has stood, in words."""
        return self.words(self.stall.standing)

    def words(self, duration: float) -> str:
        """A duration of this standstill; of one that was not watched from its beginning only the least is known."""
        return ("at least " if self.stall.at_least else "") + seconds(duration)

    def where(self, frame: Frame | None = None, process: Process | None = None) -> Where:
        at = frame or self.frame
        culprit = process or self.process
        flight, main = self.case.flight_of(culprit.pid), self.case.flight_of(self.stall.pid)
        return Where(
            file=at.file if at else None,
            line=at.line if at else None,
            function=at.function if at else None,
            pid=culprit.pid,
            worker=culprit.worker if culprit.worker is not None else (flight.worker if flight else None),
            rank=culprit.rank,
            sample=_sample(flight),
            step=main.step if main and not main.inferred else None,
        )

    def places(self, frame: Frame | None, process: Process | None) -> tuple[Where, ...]:
        """A further place to show, if it is known."""
        return (self.where(frame, process),) if frame and process else ()

    @property
    def stacks_by(self) -> SeenBy:
        """Who gave the stacks this rests on."""
        return "py-spy" if self.process.stacks_by == "py-spy" else "faulthandler"

    def finding(
        self,
        rule: Rule,
        *,
        title: str,
        evidence: Iterable[str],
        fix: str,
        severity: Severity = "error",
        confidence: float | None = None,
        where: Where | None = None,
        seen_by: SeenBy = "kernel",
        also: tuple[Where, ...] = (),
        chain: bool = True,
    ) -> Finding:
        """A finding about this standstill. `chain`: the evidence goes on with who waits for it."""
        return rule.finding(
            severity=severity,
            confidence=self.confidence if confidence is None else confidence,
            title=title,
            evidence=(*evidence, *(self.waiting_for_it if chain else ())),
            where=where or self.where(),
            fix=Fix(fix),
            seen_by=seen_by,
            also=also,
        )


def standstills(case: Case) -> Iterator[Standstill]:
    """Every stopped clock that counts, with its culprit."""
    look = next((look for look in reversed(case.looks) if look.stacks), None)
    if look is None:
        return
    for stall in case.stalls:
        if stall.excuse or (stall.standing < case.times.proven and not _asked(case, stall)):
            continue
        start = look.process(stall.pid)
        if start is None or not start.threads or look.at < stall.since - LOOK_BEFORE_SECONDS:
            continue  # what was seen before it stood still says nothing about it
        way = follow(case, look, start)
        if way:
            yield Standstill(case, stall, look, *way[-1], way)


def _asked(case: Case, stall: Stall) -> bool:
    """Ctrl-C came, or somebody attached, while this was suspect: the person wants to know now."""
    return (case.interrupted or case.asked) and stall.suspect


def named(link: Link) -> str:
    process, thread = link
    own = thread.python and thread != process.main_thread
    return f"thread {thread.name or thread.tid} of {who(process)}" if own else who(process)


def _wait_word(link: Link) -> str:
    """What it waits for, in brackets, where its frames or the kernel say so."""
    wait = link.thread.wait
    if wait is None or wait.kind not in ("lock", "shared-lock", "pipe-read"):
        return ""
    queue = wait.kind == "pipe-read" and waiting.reads_queue(link.thread)
    return f" ({waiting.GET})" if queue else "" if wait.kind == "pipe-read" else f" ({waiting.awaited(link.thread)})"


def _sample(flight: Flight | None) -> int | str | None:
    if flight is None or not flight.fetching or flight.collating:
        return None
    return flight.sample if flight.sample is not None else flight.sample_key or None
