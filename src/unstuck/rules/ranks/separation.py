"""How ranks came apart: some wait in a call, others are not there. One answer each, so that one rule speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unstuck.model import Case, Frame, Process, SeenBy, Where
from unstuck.rules import rank_words
from unstuck.rules.rank_calls import absent, arguments, called_before, first_misfit
from unstuck.rules.rank_positions import Position, World, exclude_each_other, numbers, own_arm, parting, world_of
from unstuck.rules.ranks.fewer_rounds import ended_sooner, left_training
from unstuck.rules.words import seconds

Kind = Literal["uneven", "left", "differ", "skips"]
CPU_SECONDS, CPU_SHARE = 0.05, 0.01  # of a whole process between two looks: gloo's thread wakes 100 times a second
OF_TRAINING = ("ddp_parameters", "ddp_broadcast", "ddp_gradients")


@dataclass(frozen=True)
class Separation:
    """Ranks that wait in one call, and one that is not in it though it belongs to it."""

    case: Case
    world: World
    kind: Kind
    waiting: list[Position]  # all in the same call
    missing: Position
    absent: list[Position]  # all that are not there, the missing one among them
    proven: bool

    @property
    def roll_call(self) -> list[str]:
        return self.world.roll_call()

    @property
    def call(self) -> str:
        first = self.waiting[0]
        assert first.call is not None
        return rank_words.named_call(first.call, first.frame)

    @property
    def who_waits(self) -> str:
        shown = numbers(self.waiting)
        waits = rank_words.verb(shown, "waits", "wait") if self.waiting[0].alive else "waited"
        return f"{rank_words.ranks(shown)} {waits}"

    @property
    def who_is_missing(self) -> str:
        return rank_words.ranks(self._alike)

    @property
    def is_or_are(self) -> str:
        return rank_words.verb(self._alike, "is", "are")

    @property
    def _alike(self) -> list[int]:
        """All that are where the missing one is."""
        return [p.rank for p in self.absent if p.key == self.missing.key]

    @property
    def lasting(self) -> str:
        """As evidence; empty where the run is over."""
        standing = self.waiting[0].standing
        return f"nothing has moved for {seconds(standing)}" if standing else ""

    @property
    def confidence(self) -> float:
        return 0.95 if self.proven else 0.8

    @property
    def seen_by(self) -> SeenBy:
        return "py-spy" if self.missing.frames else "flight"

    @property
    def parted(self) -> tuple[Frame, Frame] | None:
        """Where the missing one and those that wait went different ways."""
        return parting(self.missing, self.waiting[0])

    @property
    def branch(self) -> Frame | None:
        """The `if` by which they parted, as a frame at its line."""
        parted = self.parted
        if parted is None:
            return None
        mine, theirs = parted
        line = own_arm(mine, theirs) or own_arm(theirs, mine)
        return None if line is None else Frame(mine.file, line, mine.function, user=True)

    def where(self, frame: Frame | None = None) -> Where:
        """Of the missing rank; where nothing else is known, where it became one."""
        at, flight = frame or self.missing.frame or self.missing.last_seen or self._began, self.missing.flight
        return Where(
            file=at.file if at is not None else None,
            line=at.line if at is not None else None,
            function=(at.function or None) if at is not None else None,
            pid=flight.pid,
            rank=self.missing.rank,
            step=flight.step,
        )

    @property
    def swallowed(self) -> tuple[Frame, str] | None:
        """An error in the data of the missing rank that its script caught, and went on without a step: where and what.
        Not where the others caught one as well."""
        failed = {f.pid: f for f in self.case.batches_failed}
        own = failed.get(self.missing.flight.pid)
        if own is None or not self.missing.alive or any(p.flight.pid in failed for p in self.waiting):
            return None
        chain = (own.raised, *own.raised.chain)
        frame = next((frame for raised in chain for frame in raised.frames if frame[3]), None)
        return None if frame is None else (Frame(frame[0], frame[1], frame[2], user=True), chain[0].type)

    @property
    def _began(self) -> Frame | None:
        sites = (joined.site for joined in self.case.worlds_joined if joined.pid == self.missing.flight.pid)
        site = next(sites, None)
        return Frame(*site, user=True) if site is not None else None

    def also(self) -> tuple[Where, ...]:
        """Where those that wait are."""
        first = self.waiting[0]
        frame = first.frame
        if frame is None:
            return ()
        return (Where(frame.file, frame.line, frame.function or None, first.flight.pid, rank=first.rank),)


def separation(case: Case, kind: Kind) -> Separation | None:
    """The separation of this run's ranks, if it is of this kind and certain."""
    found = find(case)
    return found if found is not None and found.kind == kind else None


def find(case: Case) -> Separation | None:
    world = world_of(case)
    if world is None or (case.outcome == "finished" and not world.broken):
        return None
    held = [position for position in world.positions.values() if _waits(world, position)]
    waiting = _reference(held) if held else []
    missed = absent(world, waiting[0]) if held else []
    proven = bool(held) and _proven(world, waiting, missed)
    if held and not proven and not _long(world, waiting[0]):
        return None
    misfit = first_misfit(world) if missed or world.broken else None
    if misfit is not None and not (missed and _of_now(world, misfit)):
        waiting, missed = misfit[0], [misfit[1]]
    if not missed:
        return None
    missing = min(missed, key=lambda p: (p.alive, p.call is not None, p.rank))
    if ended_sooner(case, waiting[0], missing) or left_training(case, waiting[0], missing):  # the other one is right
        waiting, missing, missed = [missing], waiting[0], waiting
    return Separation(case, world, _kind(world, waiting[0], missing), waiting, missing, missed, proven)


def _of_now(world: World, misfit: tuple[list[Position], Position]) -> bool:
    """Both are still in these calls."""
    return all(world.positions[p.rank].call is p.call for p in (misfit[0][0], misfit[1]))


def _waits(world: World, position: Position) -> bool:
    """It stands in a call of several ranks; or it died of one, which then never ended."""
    if not position.alive:
        return world.broken and position.call is not None
    call = position.call
    return call is not None and call.kind != "init_process_group" and position.standing >= world.case.times.proven


def _reference(held: list[Position]) -> list[Position]:
    """The call that most are in; of two as large, that of the training, then the earlier one."""
    groups: dict[tuple[object, ...], list[Position]] = {}
    for position in held:
        assert position.call is not None
        groups.setdefault((position.key, arguments(position.call)), []).append(position)
    return max(groups.values(), key=lambda group: (len(group), *_at_work(group[0]), -group[0].rank))


def _at_work(position: Position) -> tuple[bool, bool, int]:
    """The greater, the more it is in the middle of the training."""
    leaving = bool(position.frames) and all(frame.leaves for frame in position.frames)
    return _trains(position), not leaving, position.flight.step


def _trains(position: Position) -> bool:
    return position.call is not None and position.call.kind in OF_TRAINING


# --- how certain ---------------------------------------------------------------------------------------------


def _proven(world: World, waiting: list[Position], absent: list[Position]) -> bool:
    """Every rank can be seen; each is gone, or stands in a call that others do not join; and none moved since."""
    if world.unseen:
        return False
    if any(p.alive and (p.call is None or p.standing < world.case.times.proven) for p in absent):
        return False
    looks = [look for look in world.case.looks if look.stacks][-2:]
    pids = [p.flight.pid for p in (*waiting, *absent) if p.alive]
    if len(looks) < 2:
        return not pids
    before, after = ({process.pid: process for process in look.processes} for look in looks)
    idle = max(CPU_SECONDS, CPU_SHARE * (looks[1].at - looks[0].at))
    return all(_at_rest(before.get(pid), after.get(pid), idle) for pid in pids)


def _at_rest(before: Process | None, after: Process | None, idle: float) -> bool:
    """Its main thread did not run between two looks, and the process did no work."""
    if before is None or after is None or not before.threads or not after.threads:
        return False
    worked = sum(t.cpu for t in after.threads) - sum(t.cpu for t in before.threads)
    return before.threads[0].switches == after.threads[0].switches and worked < idle


def _long(world: World, position: Position) -> bool:
    """By the clock alone, as for any standstill."""
    case, stall, times = world.case, position.stall, world.case.times
    if not position.alive:
        return world.broken
    if stall is None:
        return False
    if (case.interrupted or case.asked) and stall.suspect:
        return True
    return stall.lasts(max(times.silent, times.silent_ratio * stall.pace.longest))


# --- of which kind -------------------------------------------------------------------------------------------


def _kind(world: World, waiting: Position, missing: Position) -> Kind:
    if ended_sooner(world.case, missing, waiting):
        return "uneven"
    gone = not missing.alive and missing.call is None
    if gone or leaves(missing, waiting) or left_training(world.case, missing, waiting):
        return "left"
    if missing.call is None or waiting.call is None:
        return "skips"
    a, b = missing.call, waiting.call
    same = (a.group, a.number, a.kind) == (b.group, b.number, b.kind)  # with other arguments
    if same or a.group != b.group or (missing.frame and waiting.frame and missing.frame.line == waiting.frame.line):
        return "differ"
    parted = parting(missing, waiting)
    if parted is not None and exclude_each_other(*parted):
        return "differ"
    if parted is not None and (own_arm(*parted) or own_arm(*reversed(parted))):
        return "skips"
    return "skips" if called_before(missing, waiting) or called_before(waiting, missing) else "differ"


def leaves(missing: Position, waiting: Position) -> bool:
    """It is in its last call, after which it returns, while the others train."""
    if not missing.frames or not all(frame.leaves for frame in missing.frames):
        return False
    if missing.flight.step < waiting.flight.step or (_trains(waiting) and not missing.flight.loaders):
        return True
    # It used to make the call that the others are in, and they have never made its last one.
    return missing.call is not None and called_before(missing, waiting) and not called_before(waiting, missing)
