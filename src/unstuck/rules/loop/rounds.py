"""The loops a training is in, as it described them itself at several moments: the same loop then and now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from unstuck.model import Case, Where
from unstuck.recorder.records.loops import (
    Assignment,
    Comparison,
    Condition,
    DescribedLoop,
    LoopFrame,
    LoopSnapshot,
    Side,
    WayOut,
)


@dataclass(frozen=True)
class Loop:
    """One `while` or `for` around the training step, as it stood at one moment."""

    snapshot: LoopSnapshot
    frame: LoopFrame
    described: DescribedLoop
    earlier: tuple[Loop, ...] = field(default=(), repr=False)
    """The same run of the same loop before, oldest first."""

    @property
    def key(self) -> tuple[object, ...]:
        return self.snapshot.pid, self.frame.file, self.frame.number, self.described.first

    @property
    def line(self) -> int:
        return self.described.first

    @property
    def text(self) -> str:
        return self.described.text

    @property
    def step(self) -> int:
        """Training steps made by then."""
        return self.snapshot.step

    @property
    def exits(self) -> list[WayOut]:
        return self.described.exits

    @property
    def is_while(self) -> bool:
        return self.described.kind == "while"

    def assigned(self, name: str) -> list[Assignment]:
        """Statements that give the name a value: inside the loop, and in other functions of the file."""
        return self.described.assigned.get(name, [])

    def owns(self, name: str) -> bool:
        """Nothing but the function the loop is in can change the name."""
        local = self.frame.local
        plain = name.isidentifier() and (local is None or name in local)
        return plain and not any(each.elsewhere for each in self.assigned(name))

    def accounts_for(self, name: str) -> bool:
        """Everything that can change the name is known: it is the loop's own, or an attribute of a class that was read
        and that no other function of the file touches."""
        known = self.owns(name) or name in self.described.accounted
        return known and not any(each.unread for each in self.assigned(name))

    def settled(self, name: str) -> bool:
        """Nothing that could be read changes the name while the loop runs."""
        known = name.isidentifier() or name in self.described.accounted
        return known and not self.assigned(name)

    @property
    def steps_since(self) -> int:
        """Training steps made since the loop was first described."""
        return self.step - self.earlier[0].step if self.earlier else 0

    @property
    def passes_since(self) -> int:
        return self.snapshot.passes - self.earlier[0].snapshot.passes if self.earlier else 0

    @property
    def seconds_since(self) -> float:
        return self.snapshot.at - self.earlier[0].snapshot.at if self.earlier else 0.0

    def where(self, line: int | None = None) -> Where:
        return Where(
            file=self.frame.file,
            line=line or self.line,
            function=self.frame.function,
            pid=self.snapshot.pid,
            step=self.step,
        )


@dataclass(frozen=True)
class Moment:
    """All loops around one seam, outermost first; those inside generators are left to whoever draws from them."""

    snapshot: LoopSnapshot
    loops: tuple[Loop, ...]


def moments(case: Case) -> Iterator[Moment]:
    """The last description of each process, each loop with its earlier ones."""
    by_pid: dict[int, list[LoopSnapshot]] = {}
    for snapshot in case.loop_snapshots:
        by_pid.setdefault(snapshot.pid, []).append(snapshot)
    for *before, last in by_pid.values():
        known: dict[tuple[object, ...], list[Loop]] = {}
        for snapshot in before:
            for loop in _loops(snapshot):
                known.setdefault(loop.key, []).append(loop)
        yield Moment(last, tuple(replace(loop, earlier=tuple(known.get(loop.key, ()))) for loop in _loops(last)))


def _loops(snapshot: LoopSnapshot) -> Iterator[Loop]:
    for frame in reversed(snapshot.frames):
        if not frame.generator:
            yield from (Loop(snapshot, frame, described) for described in frame.loops)


def leaves(condition: Condition, wanted: bool = True) -> Iterator[tuple[Condition, bool]]:
    """Comparisons and plain values of a condition, each with the value that would help to make it `wanted`."""
    if condition.kind in ("and", "or"):
        for part in condition.parts:
            yield from leaves(part, wanted)
    elif condition.kind in ("not", "call"):
        yield from leaves(condition.parts[0], wanted if condition.kind == "call" else not wanted)
    else:
        yield condition, wanted


def comparisons(condition: Condition, wanted: bool = True) -> Iterator[tuple[Condition, Comparison, bool]]:
    """Those of the leaves that compare two sides."""
    for leaf, way in leaves(condition, wanted):
        if leaf.compared is not None:
            yield leaf, leaf.compared, way


def number(side: Side) -> float | None:
    value = side.value.number
    return None if value is None or value != value else float(value)


def quoted(side: Side) -> str:
    """step = 5120; a bare constant is its own text."""
    shown = side.value.text or "?"
    return shown if side.text == shown else f"{side.text} = {shown}"
