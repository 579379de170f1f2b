"""How long a run that nobody watched has stood, at least: from the looks, the kernel's memory, and its siblings.

Three witnesses. A blocked thread: the kernel knows when it last ran. A loader's work: the same batch and sample in
every look. A worker that computes: the processor time by which it exceeds its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unstuck.attach.inferred import Seat, seat_of
from unstuck.model import Case, Flight, Look, Pace, Process, Stall, Thread
from unstuck.rules.hang.peers import Excess, excess
from unstuck.rules.hang.standstill import draws_from_sampler, follow, process_of, stuck_thread
from unstuck.rules.hang.work import BUSY_SHARE
from unstuck.supervise.excuses import excuse
from unstuck.supervise.stillness import path_of

ALONE = 30.0
"""Seconds that one sample must have been watched in work where nothing tells how long others take."""
PATIENT = 12.0
"""The same where a sibling or the kernel says that this one is out of the ordinary."""
OVERWHELMING = 60.0
BRIEF = 1.0
"""So many seconds of processor time beyond its siblings, and a worker need not be watched longer than that."""
LONG_SLEEP = 60.0
"""Seconds of one sleep, or one wait with a limit of its own, outside the loader: it will end by itself."""
AT_WORK = 0.05
"""Share of a core that means that a process is doing something."""


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


def standings(case: Case) -> tuple[Standing, ...]:
    """Of every process that trains, as of the last look."""
    look = case.looks[-1]
    found = [_standing(case, look, process) for process in training(look)]
    if any(_at_work(case, standing) for standing in found):
        found = [_excused(standing) if _in_collective(standing) else standing for standing in found]
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
    drawing = culprit.main_thread is not None and draws_from_sampler(culprit.main_thread)
    loading = seat.fetching or drawing
    seen = _seen_since(case.looks, culprit, seat)
    watched = look.at - seen
    busy = _busy(case, culprit, thread)
    blocked = thread is not None and thread.wait is not None and thread.wait.kind != "running" and not busy
    blocked = blocked and thread is not None and _is_told(thread)
    stood = watched
    if blocked and thread is not None and thread.idle is not None:
        stood = max(stood, thread.idle)
    more = excess(case, culprit) if seat.fetching and busy and watched > 0 else None
    if more is not None:
        stood = max(stood, more.seconds)
    flight = case.flight_of(start.pid)
    if flight is not None and not flight.inferred:
        stood = max(stood, look.at - flight.since) if flight.since else stood
    why = excuse(look, start.pid) or excuse(look, culprit.pid)
    quiet = not _others_work(case, look, trail)
    timed = blocked and thread is not None and thread.wait is not None and bool(thread.wait.timed)
    if loading:
        certain = blocked and not timed
        watched_enough = watched >= (BRIEF if _overwhelms(more, seat) else case.times.busy)
        enough = stood >= (PATIENT if certain or more is not None or _in_vain(case, thread) else ALONE)
        suspect = enough and (certain or watched_enough)
    else:
        suspect = blocked and quiet and stood >= (LONG_SLEEP if timed else case.times.suspect)
    undecided = not why and not suspect and (loading or (blocked and quiet and not timed))
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
    return Standing(stall, culprit, thread, undecided, blocked and not quiet)


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
    return any(fact.expression in tried and (fact.error or not fact.exists) for fact in case.paths)


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


def _busy(case: Case, process: Process, thread: Thread | None) -> bool:
    """It had a good share of a core between the first and the last look; from one look, by its state."""
    if thread is None:
        return False
    share = share_of(case.looks, process.pid, thread.tid)
    running = thread.wait is not None and thread.wait.kind == "running"
    return running if share is None else share >= BUSY_SHARE or (running and share >= AT_WORK)


def share_of(looks: tuple[Look, ...], pid: int, tid: int | None = None) -> float | None:
    """Cores that a thread, or a whole process, used from the first look to the last."""
    first, last = (process_of(look, pid) for look in (looks[0], looks[-1]))
    passed = looks[-1].at - looks[0].at
    if first is None or last is None or passed < 0.1:
        return None
    used = [sum(t.cpu for t in p.threads if tid is None or t.tid == tid) for p in (first, last)]
    return (used[1] - used[0]) / passed


def _others_work(case: Case, look: Look, trail: tuple[Process, ...]) -> bool:
    """Somebody else of the tree computes, whom it may be waiting for."""
    apart = {process.pid for process in trail}
    for process in look.processes:
        if process.pid in apart or process.role in ("worker", "helper"):
            continue
        share = share_of(case.looks, process.pid)
        if share is not None and share >= AT_WORK:
            return True
    culprit = trail[-1]
    main = culprit.main_thread
    share = share_of(case.looks, culprit.pid)
    own = share_of(case.looks, culprit.pid, main.tid) if main else None
    return share is not None and own is not None and share - own >= AT_WORK  # another thread of its own


def _at_work(case: Case, standing: Standing) -> bool:
    share = share_of(case.looks, standing.process.pid)
    return share is not None and share >= AT_WORK and not _in_collective(standing)


def _in_collective(standing: Standing) -> bool:
    from unstuck.rules.hang.waits_on_rank import in_collective

    return standing.thread is not None and in_collective(standing.thread)


def _excused(standing: Standing) -> Standing:
    stall = replace(standing.stall, excuse="another rank is at work, and this one waits for it", suspect=False)
    return replace(standing, stall=stall, undecided=False)


def dated(flight: Flight, stall: Stall | None) -> Flight:
    """The flight of the process that holds a run up, with what is known of the time since when it does."""
    if stall is None or not flight.inferred:
        return flight
    return replace(flight, since=stall.since, moved=stall.since, sample_since=stall.since)
