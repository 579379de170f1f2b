"""The loops a training is in, as it described them itself at several moments: the same loop then and now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from unstuck.model import Case, Where
from unstuck.recorder.records.learning import Loss
from unstuck.recorder.records.loops import Assignment, DescribedLoop, LoopFrame, LoopSnapshot, WayOut


@dataclass(frozen=True)
class Loop:
    """One `while` or `for` around the training step, as it stood at one moment."""

    snapshot: LoopSnapshot
    frame: LoopFrame
    described: DescribedLoop
    earlier: tuple[Loop, ...] = field(default=(), repr=False)
    """The same run of the same loop before, oldest first."""
    loss: Loss | None = field(default=None, repr=False)
    """Of the training in it, where one loss alone says how that goes; None also where nobody asks for it."""

    @property
    def key(self) -> tuple[object, ...]:
        return self.snapshot.pid, self.frame.file, self.frame.number, self.line

    @property
    def line(self) -> int:
        return self.described.first

    @property
    def text(self) -> str:
        return self.described.text

    @property
    def exits(self) -> list[WayOut]:
        return self.described.exits

    @property
    def is_while(self) -> bool:
        return self.described.kind == "while"

    @property
    def is_innermost(self) -> bool:
        """No other loop is within it: each training step is made in an iteration of its own."""
        inner = self.snapshot.frames[0]
        return (inner.number, inner.loops[-1].first) == (self.frame.number, self.line)

    @property
    def is_endless(self) -> bool:
        """By itself: `while True`, or a `for` over something that never runs out."""
        if not self.is_while:
            return self.described.iterates.ends is False
        test = self.described.test
        return test.kind == "truth" and bool(test.value) and not test.names

    def assigned(self, name: str) -> list[Assignment]:
        """Statements that give the name a value: inside the loop, and in other functions of the file."""
        return self.described.assigned.get(name, [])

    def owns(self, name: str) -> bool:
        """Nothing but the function the loop is in can change the name."""
        local = self.frame.local
        plain = name.isidentifier() and (local is None or name in local)
        return plain and not any(assignment.elsewhere for assignment in self.assigned(name))

    def accounts_for(self, name: str) -> bool:
        """Everything that can change the name is known: it is the loop's own, or an attribute of a class that was read
        and that no other function of the file touches."""
        known = self.owns(name) or name in self.described.accounted
        return known and not any(assignment.unread for assignment in self.assigned(name))

    def never_changes(self, name: str) -> bool:
        """Nothing that could be read changes the name while the loop runs."""
        known = name.isidentifier() or name in self.described.accounted
        return known and not self.assigned(name)

    @property
    def step(self) -> int:
        """Training steps made by then."""
        return self.snapshot.step

    @property
    def first_seen(self) -> LoopSnapshot:
        return self.earlier[0].snapshot if self.earlier else self.snapshot

    @property
    def steps_since(self) -> int:
        """Training steps made since the loop was first described."""
        return self.step - self.first_seen.step

    @property
    def passes_since(self) -> int:
        return self.snapshot.passes - self.first_seen.passes

    @property
    def seconds_since(self) -> float:
        return self.snapshot.at - self.first_seen.at

    def where(self, line: int | None = None) -> Where:
        return Where(self.frame.file, line or self.line, self.frame.function, pid=self.snapshot.pid, step=self.step)


@dataclass(frozen=True)
class Moment:
    """All loops around one training step, outermost first; those inside generators end as their caller wants."""

    snapshot: LoopSnapshot
    loops: tuple[Loop, ...]
    inside: tuple[Loop, ...] = ()
    """Those of generators."""


def moments(case: Case) -> Iterator[Moment]:
    """The last description of each process, each loop with its earlier ones."""
    by_pid: dict[int, list[LoopSnapshot]] = {}
    for snapshot in case.loop_snapshots:
        if snapshot.when == "asked":
            by_pid.setdefault(snapshot.pid, []).append(snapshot)
    for *before, last in by_pid.values():
        known: dict[tuple[object, ...], list[Loop]] = {}
        for snapshot in before:
            for loop in loops_of(snapshot):
                known.setdefault(loop.key, []).append(loop)
        loops = [replace(loop, earlier=tuple(known.get(loop.key, ()))) for loop in loops_of(last)]
        yield Moment(
            last,
            tuple(loop for loop in loops if not loop.frame.generator),
            tuple(loop for loop in loops if loop.frame.generator),
        )


def loops_of(snapshot: LoopSnapshot) -> Iterator[Loop]:
    for frame in reversed(snapshot.frames):
        yield from (Loop(snapshot, frame, described) for described in frame.loops)
