"""How long a run that nobody watched has stood, at least: from the looks, the kernel's memory, and its siblings.

Three witnesses. A blocked thread: the kernel knows when it last ran. A loader's work: the same batch and sample in
every look. A worker that computes: the processor time by which it exceeds its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from unstuck.attach.inferred import loader_work
from unstuck.attach.movement import WORKING_SHARE, computes, others_move, share_of, turns_in_vain
from unstuck.model import Case, Flight, Look, Process, Stall, Thread
from unstuck.rules.hang.chain import follow
from unstuck.rules.hang.waiting import draws_from_sampler, in_collective
from unstuck.rules.hang.work import Excess, excess, siblings
from unstuck.rules.rank_positions import in_backward
from unstuck.supervise.progress import excuse, path_of

LONGEST_SECONDS = 31.0  # that a run is looked at which has not moved and is not explained, if the person set no time
MIN_LOOKED_SECONDS = 2.5  # in which nothing may have moved before anything is said that is not proven
ODD_SAMPLE_SECONDS = 12.0  # at a sample that the kernel, or a failing path, shows to be out of the ordinary
LONE_SAMPLE_SECONDS = 30.0  # at a sample where all that tells is that its siblings had nothing to do meanwhile
USUAL_BATCHES = 20.0  # times the average batch of this worker, where that is all there is to compare with
OVERWHELMING_SECONDS = 60.0  # of processor time beyond its siblings; then a worker is watched no longer than
BRIEF_SECONDS = 1.0
LONG_SLEEP_SECONDS = 60.0  # of one sleep, or one wait with a limit of its own, outside the loader: it ends by itself
OUTSIDE = frozenset(("file", "file-lock", "terminal-read", "device", "socket"))
"""Waits for something outside the process: what else its threads do has nothing to do with it."""


@dataclass(frozen=True)
class Holdup:
    """One training process, followed to the thread that it waits for."""

    stall: Stall
    process: Process
    thread: Thread | None
    undecided: bool
    """It has not moved, it is not named yet, and more looks may settle it."""
    others_work: bool = False
    """Somebody else of the run computes, whom it may be waiting for."""
    watched: float = 0.0
    """Seconds for which the looks found it at the same work."""

    @property
    def in_collective(self) -> bool:
        """Or in a backward pass of several ranks, asleep: there DistributedDataParallel waits for the others."""
        if self.thread is None or in_collective(self.thread):
            return self.thread is not None
        asleep = self.thread.wait is not None and self.thread.wait.kind == "lock"
        return asleep and self.process.role == "rank" and in_backward(self.thread)


def holdups(case: Case) -> tuple[Holdup, ...]:
    """Of every process that trains, as of the last look."""
    found = [_Witnesses(case, process).holdup() for process in training(case.looks[-1])]
    elsewhere = next((holdup.process for holdup in found if not holdup.in_collective), None)
    world = max((holdup.process.world or 0 for holdup in found), default=0)
    if elsewhere is not None:
        where = f"pid {elsewhere.pid}, which is not in one"
    elif world > len(found):  # there are ranks on another machine, or started apart from these
        where = "one that cannot be seen from here"
    else:
        return tuple(found)
    return tuple(_excused(holdup, where) if holdup.in_collective else holdup for holdup in found)


def _excused(holdup: Holdup, where: str) -> Holdup:
    stall = replace(holdup.stall, excuse=f"it waits in a collective for another rank: {where}", suspect=False)
    return replace(holdup, stall=stall, undecided=False)


def training(look: Look) -> list[Process]:
    """Ranks; without any, the main process; without one that can be told, every Python process at the top."""
    python = [process for process in look.processes if process.is_python and process.threads]
    ranks = [process for process in python if process.role == "rank"]
    return ranks or [process for process in python if process.role == "main"][:1] or python[:1]


def dated(flight: Flight, stall: Stall | None) -> Flight:
    """The flight of the process that holds a run up, with what is known of the time since when it does."""
    if stall is None or not flight.inferred:
        return flight
    return replace(flight, since=stall.since, moved=stall.since, sample_since=stall.since)


class _Witnesses:
    """What the looks say about the thread that one training process waits for."""

    def __init__(self, case: Case, start: Process) -> None:
        self.case, self.look, self.start = case, case.looks[-1], start
        way = follow(case, self.look, start)
        self.trail = tuple(link.process for link in way) or (start,)
        self.process = self.trail[-1]
        self.thread = way[-1].thread if way else None
        self.wait = self.thread.wait if self.thread is not None else None
        self.kind = self.wait.kind if self.wait is not None else "unknown"
        self.work = loader_work(self.process.main_thread)
        self.computes = computes(case.looks, self.process, self.thread)
        self.watched = self.look.at - _same_work_since(case.looks, self.process)

    def holdup(self) -> Holdup:
        flight = self.case.flight_of(self.start.pid)
        why = excuse(self.look, self.start.pid) or excuse(self.look, self.process.pid)
        suspect, undecided = self._judgement()
        stall = Stall(
            pid=self.start.pid,
            phase=flight.phase if flight else "start",
            since=self.look.at - self.stood,
            standing=self.stood,
            seams=flight is not None and flight.phase != "start",
            excuse=why,
            suspect=suspect and not why,
            at_least=True,
        )
        others_work = self.blocked and self.kind != "sleep" and not (self.waits_outside or self.others_rest)
        return Holdup(stall, self.process, self.thread, undecided and not why, others_work, self.watched)

    def _judgement(self) -> tuple[bool, bool]:
        """Whether it is suspect, and whether more looks may settle it."""
        looked_enough = self.look.at - self.case.looks[0].at >= MIN_LOOKED_SECONDS
        if looked_enough and self._polls_orphaned_file():
            return True, False
        may_be_stuck = self.blocked and (self.waits_outside or self.others_rest)
        stuck = may_be_stuck and looked_enough
        if not self.loading:
            suspect = stuck and self.stood >= (LONG_SLEEP_SECONDS if self.timed else self.case.times.suspect)
            return suspect, not suspect and may_be_stuck and not self.timed
        needed = self._needed()
        blocked = self.blocked and not self.timed
        suspect = (stuck and blocked and self.stood >= ODD_SAMPLE_SECONDS) or self.watched >= needed
        own = self.thread.user_frame if self.thread else None
        may_turn = needed < float("inf") and own is not None and bool(own.tries)
        return suspect, not suspect and (may_turn or needed < LONGEST_SECONDS or blocked)

    @property
    def loading(self) -> bool:
        main = self.process.main_thread
        return self.work.fetching or (main is not None and draws_from_sampler(main))

    @cached_property
    def blocked(self) -> bool:
        """It waits; and its stack was seen, or the kernel alone says enough, which knows who holds a file lock."""
        seen = self.thread is not None and (bool(self.thread.frames) or self.kind == "file-lock")
        return seen and not self.computes and self.kind not in ("running", "unknown")

    @property
    def timed(self) -> bool:
        """It waits with a limit of time, so it wakes by itself."""
        return self.blocked and self.wait is not None and bool(self.wait.timed)

    @cached_property
    def stood(self) -> float:
        """Seconds for which it has stood, at least: what the strongest witness says."""
        witnesses = [self.watched if self.loading or not self.timed else 0.0]
        if self.blocked and self.thread is not None:
            witnesses.append(self.thread.idle or 0.0)
        if self.excess is not None:
            witnesses.append(self.excess.seconds)
        flight = self.case.flight_of(self.start.pid)
        if flight is not None and not flight.inferred and flight.since:
            witnesses.append(self.look.at - flight.since)
        return max(witnesses)

    @cached_property
    def excess(self) -> Excess | None:
        """Its processor time beyond its siblings', where it computes at a batch that the looks found it at twice."""
        at_it = self.work.fetching and self.computes and self.watched > 0
        return excess(self.case, self.process) if at_it else None

    @cached_property
    def others_rest(self) -> bool:
        return not others_move(self.case.looks, self.trail, self.thread)

    @cached_property
    def waits_outside(self) -> bool:
        """For other ranks, or for something outside the process with nobody of this run at work at the other end."""
        if self.thread is not None and in_collective(self.thread):
            return True
        others = self.wait.others if self.wait is not None else ()
        return self.kind in OUTSIDE and not any(self._works(pid) for pid in others)

    def _works(self, pid: int) -> bool:
        """A process of this run that computes, reads or writes."""
        first, now = self.case.looks[0].process(pid), self.look.process(pid)
        if now is None or first is None:
            return False
        return first.io_bytes != now.io_bytes or (share_of(self.case.looks, pid) or 0.0) >= WORKING_SHARE

    def _polls_orphaned_file(self) -> bool:
        """It tests again and again for a lock file whose maker is dead and that nobody has open."""
        polled = {frame.polls for frame in self.thread.frames if frame.polls} if self.thread is not None else set()
        facts = [fact for fact in self.case.paths if fact.expression in polled and fact.pid == self.process.pid]
        return any(fact.exists and fact.pid_alive is False and not fact.users for fact in facts)

    def _needed(self) -> float:
        """Seconds for which one sample must be watched before it is called stuck; endless if nothing tells what is
        usual here."""
        work = self.work
        if not work.identified:
            return float("inf")  # what was seen twice may be two samples
        if self.excess is not None:
            # Streams are not dealt out in turn: there a worker may honestly have more to do than its siblings.
            known = work.sample is not None or bool(work.sample_key)
            return BRIEF_SECONDS if known and self.excess.seconds >= OVERWHELMING_SECONDS else self.case.times.busy
        if self._opens_in_vain() or turns_in_vain(self.case.looks, self.process, self.thread):
            return ODD_SAMPLE_SECONDS
        if self._siblings_idle():
            return LONE_SAMPLE_SECONDS
        batches = (work.batch or 0) // (work.workers or 1)
        if batches < 3:
            return self.case.times.silent
        return max(ODD_SAMPLE_SECONDS, USUAL_BATCHES * (self.case.now - self.process.began - self.watched) / batches)

    def _opens_in_vain(self) -> bool:
        """What its loop tries again and again was tried from outside, and fails."""
        tried = {frame.tries for frame in self.thread.frames if frame.user and frame.tries} if self.thread else set()
        return any(fact.expression in tried and (fact.error or not fact.exists) for fact in self.case.paths)

    def _siblings_idle(self) -> bool:
        """Every other worker had nothing to do in any look: this one alone holds all of them up."""
        if self.process.role != "worker":
            return False
        others = [siblings(look, self.process) for look in self.case.looks]
        return all(others) and not any(loader_work(p.main_thread).fetching for group in others for p in group)


def _same_work_since(looks: tuple[Look, ...], process: Process) -> float:
    """The time of the first look from which on it was always found at the same work."""
    since, identity = looks[-1].at, _work_identity(process)
    for look in reversed([look for look in looks if look.stacks]):
        again = look.process(process.pid)
        if again is None or _work_identity(again) != identity:
            break
        since = look.at
    return since


def _work_identity(process: Process) -> tuple[object, ...]:
    """In the loader its own numbers tell; elsewhere the functions of the user that are on the stack."""
    work, thread = loader_work(process.main_thread), process.main_thread
    if work.fetching:
        return work.identity
    return ("sampler",) if thread is not None and draws_from_sampler(thread) else (work.identity, path_of(process))
