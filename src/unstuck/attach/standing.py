"""How long a run that nobody watched has stood, at least: from the looks, the kernel's memory, and its siblings.

Three witnesses. A blocked thread: the kernel knows when it last ran. A loader's work: the same batch and sample in
every look. A worker that computes: the processor time by which it exceeds its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unstuck.attach.inferred import Seat, seat_of
from unstuck.attach.motion import AT_WORK, others_move, share_of, tries_again, turns_in_vain
from unstuck.attach.motion import busy as computes
from unstuck.model import Case, Flight, Look, Pace, Process, Stall, Thread
from unstuck.rules.hang.standstill import follow, stuck_thread
from unstuck.rules.hang.waiting import draws_from_sampler, in_collective, process_of
from unstuck.rules.hang.work import Excess, excess, siblings
from unstuck.supervise.progress import excuse, path_of

LONGEST = 31.0
"""Seconds that a run is looked at which has not moved and is not explained, unless the person set a time."""
WATCH = 2.5
"""Seconds over which nothing may have moved before anything is said that is not proven."""
PATIENT = 12.0
"""Seconds at one sample, where its siblings, the kernel, or a failing path say that it is out of the ordinary."""
ALONE = 30.0
"""The same where all that tells is that its siblings have had nothing to do meanwhile."""
RATIO = 20.0
"""So many times as long as a batch of this worker took on average, where that is all there is to compare with."""
OVERWHELMING = 60.0
BRIEF = 1.0
"""So many seconds of processor time beyond its siblings, and a worker need not be watched longer than that."""
LONG_SLEEP = 60.0
"""Seconds of one sleep, or one wait with a limit of its own, outside the loader: it will end by itself."""
DIRECT = frozenset(("file", "file-lock", "terminal-read", "device", "socket"))
"""Waits for something outside the process: what else its threads do has nothing to do with it."""


@dataclass(frozen=True)
class Standing:
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


def standings(case: Case) -> tuple[Standing, ...]:
    """Of every process that trains, as of the last look."""
    look = case.looks[-1]
    found = [_standing(case, look, process) for process in training(look)]
    elsewhere = next((s.process for s in found if not _in_collective(s)), None)
    if elsewhere is not None or _ranks_unseen(found):
        found = [_excused(standing, elsewhere) if _in_collective(standing) else standing for standing in found]
    return tuple(found)


def training(look: Look) -> list[Process]:
    """Ranks; without any, the main process; without one that can be told, every Python process at the top."""
    python = [process for process in look.processes if process.is_python and process.threads]
    ranks = [process for process in python if process.role == "rank"]
    return ranks or [process for process in python if process.role == "main"][:1] or python[:1]


def _standing(case: Case, look: Look, start: Process) -> Standing:
    trail = follow(case, look, start)
    culprit = trail[-1]
    thread = stuck_thread(culprit)
    seat = seat_of(culprit.main_thread)
    loading = seat.fetching or (culprit.main_thread is not None and draws_from_sampler(culprit.main_thread))
    watched = look.at - _seen_since(case.looks, culprit, seat)
    busy = computes(case.looks, culprit, thread)
    kind = thread.wait.kind if thread is not None and thread.wait is not None else "unknown"
    blocked = thread is not None and kind not in ("running", "unknown") and not busy and _is_told(thread)
    timed = blocked and thread is not None and thread.wait is not None and bool(thread.wait.timed)
    idle = thread.idle if blocked and thread is not None and thread.idle is not None else 0.0
    more = excess(case, culprit) if seat.fetching and busy and watched > 0 else None
    flight = case.flight_of(start.pid)
    stood = max(watched if not timed or loading else 0.0, idle, more.seconds if more else 0.0)
    if flight is not None and not flight.inferred and flight.since:
        stood = max(stood, look.at - flight.since)
    why = excuse(look, start.pid) or excuse(look, culprit.pid)
    collective = thread is not None and in_collective(thread)
    direct = collective or (kind in DIRECT and not _served(case, look, thread))
    quiet = not others_move(case.looks, trail, thread)
    still = blocked and (direct or quiet) and look.at - case.looks[0].at >= WATCH
    if loading:
        needed = _needed(case, culprit, thread, seat, more, watched)
        suspect = (still and not timed and stood >= PATIENT) or (needed is not None and watched >= needed)
        may_turn = needed is not None and tries_again(thread)
        undecided = not suspect and (may_turn or (needed is not None and needed < LONGEST) or (blocked and not timed))
    else:
        suspect = still and stood >= (LONG_SLEEP if timed else case.times.suspect)
        undecided = not suspect and blocked and not timed and (direct or quiet)
    if _orphaned(case, culprit, thread) and look.at - case.looks[0].at >= WATCH:
        suspect, undecided = True, False
    stall = Stall(
        pid=start.pid,
        phase=flight.phase if flight else "start",
        since=look.at - stood,
        standing=stood,
        pace=Pace(),
        seams=flight is not None and flight.phase != "start",
        excuse=why,
        still=0.0,  # nobody kept a clock: what counts is what was asked
        suspect=suspect and not why,
        at_least=True,
    )
    others_work = blocked and kind != "sleep" and not direct and not quiet
    return Standing(stall, culprit, thread, undecided and not why, others_work, watched)


def _orphaned(case: Case, process: Process, thread: Thread | None) -> bool:
    """It tests again and again for a lock file whose maker is dead and that nobody has open."""
    polled = {frame.polls for frame in thread.frames if frame.polls} if thread is not None else set()
    facts = [fact for fact in case.paths if fact.expression in polled and fact.pid == process.pid]
    return any(fact.exists and fact.pid_alive is False and not fact.users for fact in facts)


def _served(case: Case, look: Look, thread: Thread | None) -> bool:
    """At the other end is somebody of this run who is at work: a holder that computes, reads or writes."""
    for pid in thread.wait.others if thread is not None and thread.wait is not None else ():
        first, now = process_of(case.looks[0], pid), process_of(look, pid)
        if now is None or first is None:
            continue
        if first.io_bytes != now.io_bytes or (share_of(case.looks, pid) or 0.0) >= AT_WORK:
            return True
    return False


def _needed(
    case: Case, process: Process, thread: Thread | None, seat: Seat, more: Excess | None, watched: float
) -> float | None:
    """Seconds for which one sample must be watched before it is called stuck; None: nothing tells what is usual."""
    if not seat.identified:
        return None  # what was seen twice may be two samples
    if more is not None:
        return BRIEF if _overwhelms(more, seat) else case.times.busy
    if _in_vain(case, thread) or turns_in_vain(case.looks, process.pid, thread):
        return PATIENT
    if _siblings_idle(case, process):
        return ALONE
    done = (seat.batch or 0) // (seat.workers or 1)
    if done < 3:
        return case.times.silent
    usual = (case.now - process.began - watched) / done
    return max(PATIENT, RATIO * usual)


def _siblings_idle(case: Case, process: Process) -> bool:
    """Every other worker had nothing to do in any look: this one alone holds all of them up."""
    alone = [siblings(look, process) for look in case.looks]
    idle = all(not seat_of(other.main_thread).fetching for others in alone for other in others)
    return process.role == "worker" and all(alone) and idle


def _is_told(thread: Thread) -> bool:
    """Its stack was seen; or the kernel alone says enough, which knows who holds a file lock."""
    return bool(thread.frames) or (thread.wait is not None and thread.wait.kind == "file-lock")


def _overwhelms(more: Excess | None, seat: Seat) -> bool:
    """A known sample, and minutes of work beyond what the siblings did: no need to watch it for long.

    Streams are not dealt out in turn, so there a worker may honestly have more to do than its siblings."""
    known = seat.sample is not None or bool(seat.sample_key)
    return more is not None and known and more.seconds >= OVERWHELMING


def _in_vain(case: Case, thread: Thread | None) -> bool:
    """What its loop tries again and again was tried from outside, and fails."""
    tried = {frame.tries for frame in thread.frames if frame.user and frame.tries} if thread else set()
    return any(
        fact.expression in tried and (fact.error or not fact.exists) for fact in case.paths if thread is not None
    )


def _seen_since(looks: tuple[Look, ...], process: Process, seat: Seat) -> float:
    """The time of the first look from which on it was always found at the same work."""
    since = looks[-1].at
    sign = _sign(process, seat)
    for look in reversed([look for look in looks if look.stacks]):
        same = process_of(look, process.pid)
        if same is None or _sign(same, seat_of(same.main_thread)) != sign:
            break
        since = look.at
    return since


def _sign(process: Process, seat: Seat) -> tuple[object, ...]:
    """In the loader its own numbers tell; elsewhere the functions of the user that are on the stack."""
    if seat.fetching:
        return seat.sign
    thread = process.main_thread
    return (True,) if thread is not None and draws_from_sampler(thread) else (seat.sign, path_of(process))


def _in_collective(standing: Standing) -> bool:
    return standing.thread is not None and in_collective(standing.thread)


def _ranks_unseen(found: list[Standing]) -> bool:
    """There are ranks elsewhere: on another machine, or started apart from these."""
    for standing in found:
        world = standing.process.world
        if world is not None and world > len(found):
            return True
    return False


def _excused(standing: Standing, elsewhere: Process | None) -> Standing:
    where = "one that cannot be seen from here" if elsewhere is None else f"pid {elsewhere.pid}, which is not in one"
    stall = replace(standing.stall, excuse=f"it waits in a collective for another rank: {where}", suspect=False)
    return replace(standing, stall=stall, undecided=False)


def dated(flight: Flight, stall: Stall | None) -> Flight:
    """The flight of the process that holds a run up, with what is known of the time since when it does."""
    if stall is None or not flight.inferred:
        return flight
    return replace(flight, since=stall.since, moved=stall.since, sample_since=stall.since)
