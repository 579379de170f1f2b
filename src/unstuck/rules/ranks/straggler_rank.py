"""straggler-rank: one rank is slower than the others, and all wait for it at every step.

What it sees
    The time that each rank needs for its own part of a step: loading data, forward pass, optimizer; without the time
    inside collectives and in the backward pass, where ranks wait for each other.

Why it matters
    Every step takes as long as the slowest rank needs. The others wait, and their GPUs idle.

Evidence
    The time of the slow rank and of the others, the phase in which it is slower, and what share of the run is lost.

Fix
    Make the work of that rank, or the machine it runs on, equal to that of the others.

When it is wrong
    Ranks that do different work on purpose. A difference below a half is information only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from unstuck.model import Case, Finding, Flight, Where
from unstuck.rules.rank_positions import Position, world_of
from unstuck.rules.rule import Rule
from unstuck.text import seconds

MIN_STEPS = 64  # all of them are timed
MIN_RATIO, LOUD_RATIO = 1.25, 1.5  # of the slow rank's own time to that of the others
MIN_LOST, LOUD_LOST = 0.05, 0.1  # of the time of the run
MIN_SECONDS, LOUD_SECONDS = 1.0, 5.0  # that were lost in all
PHASES = {"data": "loading data", "between": "its own code (the forward pass, mostly)", "optimizer": "the optimizer"}


@dataclass(frozen=True)
class Own:
    """Seconds a step of one rank, without those in which it waits for others."""

    position: Position
    parts: dict[str, float]
    step: float

    @property
    def all(self) -> float:
        return sum(self.parts.values())


def decide(case: Case) -> Iterable[Finding]:
    world = world_of(case)
    if world is None or len(world.positions) < 2:
        return
    ranks = [own for position in world.positions.values() if (own := _own(position)) is not None]
    if len(ranks) < 2 or len(ranks) < len(world.positions):
        return
    slow = max(ranks, key=lambda own: own.all)
    others = [own for own in ranks if own is not slow]
    usual = median(own.all for own in others)
    lost = (slow.all - usual) / slow.step if slow.step else 0.0
    if usual <= 0 or slow.all < MIN_RATIO * usual or lost < MIN_LOST:
        return
    next_slowest = max(own.all for own in others)
    if len(others) > 1 and next_slowest > (slow.all + usual) / 2:
        return  # not one straggler: ranks of different speed
    phase = max(PHASES, key=lambda name: slow.parts[name] - median(own.parts[name] for own in others))
    wasted = (slow.all - usual) * slow.position.flight.step
    if wasted < MIN_SECONDS:
        return
    loud = slow.all >= LOUD_RATIO * usual and lost >= LOUD_LOST and wasted >= LOUD_SECONDS
    yield RULE.finding(
        severity="warning" if loud else "info",
        confidence=0.85,
        title=f"rank {slow.position.rank} is {slow.all / usual:.1f} times as slow as the others, which wait for it "
        f"{lost:.0%} of the time",
        evidence=(
            f"rank {slow.position.rank} needs {seconds(slow.all)} a step for itself, the others {seconds(usual)}",
            f"it is slower in {PHASES[phase]}: {seconds(slow.parts[phase])} a step compared with "
            f"{seconds(median(own.parts[phase] for own in others))}",
            f"a step takes {seconds(slow.step)}; over {slow.position.flight.step:,} steps the others waited "
            f"{seconds(wasted)} for it",
        ),
        where=_where(slow.position),
        fix=f"Look at what rank {slow.position.rank} does differently in {PHASES[phase]}: more or larger samples, "
        "a slower disk, a busier machine.",
    )


def _own(position: Position) -> Own | None:
    flight: Flight = position.flight
    if flight.step < MIN_STEPS:
        return None
    parts = {name: _usual(flight, name) for name in PHASES}
    parts["between"] = max(0.0, parts["between"] - flight.in_collectives / flight.step)
    backward = _usual(flight, "backward")
    return Own(position, parts, sum(parts.values()) + backward + flight.in_collectives / flight.step)


def _usual(flight: Flight, phase: str) -> float:
    """Seconds a step, without the longest of all: a checkpoint, a start."""
    pace = flight.paces.get(phase)
    return max(0.0, pace.total - pace.longest) / flight.step if pace is not None else 0.0


def _where(position: Position) -> Where:
    last = position.flight.collectives[-1] if position.flight.collectives else None
    where = Where(pid=position.flight.pid, rank=position.rank, step=position.flight.step)
    if last is None or not last.file:
        return where
    return replace(where, file=last.file, line=last.line, function=last.function or None)


RULE = Rule("straggler-rank", "ranks", decide, gathers=True)
