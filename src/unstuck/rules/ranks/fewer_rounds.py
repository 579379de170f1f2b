"""Which of two ranks made fewer rounds: by its last pass over a loader, or by the loops around its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from unstuck.model import Case, Collective, Frame, LastPass
from unstuck.recorder.records import Site
from unstuck.recorder.records.loops import DescribedLoop, LoopFrame
from unstuck.rules.rank_calls import called_before
from unstuck.rules.rank_positions import Position, own_arm


class Ended(NamedTuple):
    """A pass that is over on one rank, and not on another."""

    site: Site
    batches: int | None  # None: not known, in a loop without a loader
    more: int | None = None  # batches of the other rank, where known
    loop: str = ""  # as it is written, where there is no loader


def ended_sooner(case: Case, one: Position, other: Position) -> Ended | None:
    """The pass that the first has come to the end of while the other, in the same one, has more batches."""
    theirs = {site: (last, length) for site, last, length in _passes(case, other)}
    for site, last, _ in _passes(case, one):
        same, length = theirs.get(site, (None, None))
        if last.batches is None or same is None or same.batches is not None or same.number != last.number:
            continue
        # Of a stream nobody knows the length. One that skipped a step of as many batches has made fewer of them.
        more = other.flight.batch > last.batches or last.steps >= last.batches
        if length > last.batches if length is not None else more:
            return Ended(site, last.batches, length)
    return None if one.flight.loaders or other.flight.loaders else _left_its_loop(case, one, other)


def _passes(case: Case, position: Position) -> Iterator[tuple[Site, LastPass, int | None]]:
    """The last pass over each loader, by the line of its loop; and the length of that loader."""
    loaders = {s.number: s for s in case.loaders if s.pid == position.flight.pid and s.site is not None}
    for last in position.flight.passes:
        settings = loaders.get(last.loader)
        if settings is not None and settings.site is not None:
            yield settings.site, last, settings.length


# --- without a loader ----------------------------------------------------------------------------------------


def _left_its_loop(case: Case, one: Position, other: Position) -> Ended | None:
    """The first is in a call that comes after the loop around the steps; the other, after as many steps, in one of
    that loop, which the first made in each round; and it cannot have gone round the call of the first."""
    mine, theirs = one.call, other.call
    known = loops_around(case, one)
    around = [frame for frame in known if frame.loops]
    if not around or mine is None or theirs is None or theirs.step < mine.step or not called_before(one, other):
        return None
    own, loop = around[0], around[0].loops[-1]
    only_by_its_end = loop.kind == "for" and all(way.kind == "raise" for way in loop.exits)
    if not only_by_its_end or not _inside(own, loop, one, other) or not _after(known, own, loop, one, other):
        return None
    one_pass = len([each for frame in around for each in frame.loops]) == 1 or one.flight.epoch == 1
    return Ended((own.file, loop.first, own.function), _rounds(one, mine, one_pass), None, loop.text)


def left_training(case: Case, one: Position, other: Position) -> bool:
    """The first is behind all loops around its steps, and the other in the innermost of them, in a call that the first
    made there too. It is on its way out, whatever it still has to do."""
    around = [frame for frame in loops_around(case, one) if frame.loops]
    if not around or one.call is None or other.call is None or not called_before(one, other):
        return False
    seen = [(frame, at.line) for frame in around if (at := _in_function(frame, one)) is not None]
    behind = bool(seen) and all(line > frame.loops[0].last for frame, line in seen)
    return behind and _inside(around[0], around[0].loops[-1], one, other)


def loops_around(case: Case, position: Position) -> list[LoopFrame]:
    """The functions around its steps, with their loops, the innermost first; no generator: it does not train."""
    known = (snapshot.frames for snapshot in reversed(case.loop_snapshots) if snapshot.pid == position.flight.pid)
    return [frame for frame in next(known, []) if not frame.generator]


def _inside(own: LoopFrame, loop: DescribedLoop, one: Position, other: Position) -> bool:
    """The second is in that loop. Where only the line of its call is known, by how often the first came by there."""
    at = _in_function(own, other)
    if at is not None:
        return loop.first <= at.line <= loop.last
    call = other.call
    rows = [c.step for c in one.flight.collectives if call is not None and (c.file, c.line) == (call.file, call.line)]
    return other.process is None and len(set(rows)) > 1


def _after(known: list[LoopFrame], own: LoopFrame, loop: DescribedLoop, one: Position, other: Position) -> bool:
    """The first is behind that loop, in the same round of the one around it, where every rank comes by."""
    at = _in_function(own, one)
    if at is not None:
        rest, behind = own.loops[:-1], at.line > loop.last
    else:  # it has returned from that function
        callers = known[known.index(own) + 1 :]
        own = next((frame for frame in callers if _in_function(frame, one) is not None), own)
        at = _in_function(own, one)
        rest, behind = own.loops, at is not None and at.line >= own.line
    if at is None or not behind or any(not outer.first <= at.line <= outer.last for outer in rest):
        return False
    seen, below = _in_function(own, other) or Frame(own.file, own.line, own.function), one.frames.index(at) + 1
    deeper = one.frames[below:]
    if own_arm(at, seen) is not None or set(at.guards) - set(seen.guards):
        return False
    return not any(frame.arms or frame.guards for frame in deeper)


def _in_function(function: LoopFrame, position: Position) -> Frame | None:
    same = (f for f in position.frames if (f.file, f.function) == (function.file, function.function))
    return next(same, None)


def _rounds(one: Position, call: Collective, one_pass: bool) -> int | None:
    """Steps since it came by there the last time; in its first pass, all."""
    before = [c.step for c in one.flight.collectives[:-1] if (c.file, c.line) == (call.file, call.line)]
    if before:
        return call.step - before[-1]
    return call.step if one_pass else None
