"""The loops a training is in, as it described them itself at several moments: the same loop then and now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from unstuck.model import Case, Fact, Where


@dataclass(frozen=True)
class Loop:
    """One `while` or `for` around the training step, as it stood at one moment."""

    pid: int
    at: float
    step: int
    passes: int
    frame: dict[str, Any]
    told: dict[str, Any]
    earlier: tuple[Loop, ...] = field(default=(), repr=False)
    """The same run of the same loop before, oldest first."""

    @property
    def key(self) -> tuple[object, ...]:
        return self.pid, self.frame["file"], self.frame["id"], self.told["first"]

    @property
    def exits(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.told["exits"]
        return found

    @property
    def is_while(self) -> bool:
        return bool(self.told["kind"] == "while")

    @property
    def text(self) -> str:
        return str(self.told["text"])

    def assigned(self, name: str) -> list[dict[str, Any]]:
        """Statements that give the name a value: inside the loop, and in other functions of the file."""
        found: list[dict[str, Any]] = self.told["assigned"].get(name, [])
        return found

    def owns(self, name: str) -> bool:
        """Nothing but the function the loop is in can change the name."""
        local = self.frame["local"]
        plain = name.isidentifier() and (local is None or name in local)
        return plain and not any(each["elsewhere"] for each in self.assigned(name))

    def accounts_for(self, name: str) -> bool:
        """Everything that can change the name is known: it is the loop's own, or an attribute of a class that was read
        and that no other function of the file touches."""
        known = self.owns(name) or name in self.told["accounted"]
        return known and not any(
            guard["text"] == "elsewhere" for each in self.assigned(name) for guard in each["guards"]
        )

    def settled(self, name: str) -> bool:
        """Nothing that could be read changes the name while the loop runs."""
        known = name.isidentifier() or name in self.told["accounted"]
        return known and not self.assigned(name)

    @property
    def steps_since(self) -> int:
        """Training steps made since the loop was first described."""
        return self.step - self.earlier[0].step if self.earlier else 0

    @property
    def passes_since(self) -> int:
        return self.passes - self.earlier[0].passes if self.earlier else 0

    def where(self, line: int | None = None) -> Where:
        return Where(
            file=self.frame["file"],
            line=line or self.told["first"],
            function=self.frame["function"],
            pid=self.pid,
            step=self.step,
        )


@dataclass(frozen=True)
class Moment:
    """All loops around one seam, outermost first; those inside generators are left to whoever draws from them."""

    fact: Fact
    loops: tuple[Loop, ...]


def moments(case: Case) -> Iterator[Moment]:
    """The last description of each process, each loop with its earlier ones."""
    by_pid: dict[int, list[Fact]] = {}
    for fact in case.facts:
        if fact.kind == "loops":
            by_pid.setdefault(fact.pid, []).append(fact)
    for facts in by_pid.values():
        *before, last = facts
        known: dict[tuple[object, ...], list[Loop]] = {}
        for fact in before:
            for loop in _loops(fact):
                known.setdefault(loop.key, []).append(loop)
        yield Moment(last, tuple(_loops(last, known)))


def _loops(fact: Fact, known: dict[tuple[object, ...], list[Loop]] | None = None) -> Iterator[Loop]:
    for frame in reversed(fact.data["frames"]):
        if frame["generator"]:
            continue
        for told in frame["loops"]:
            loop = Loop(fact.pid, fact.at, fact.data["step"], fact.data["passes"], frame, told)
            earlier = tuple((known or {}).get(loop.key, ()))
            yield replace(loop, earlier=earlier)


def leaves(condition: dict[str, Any], wanted: bool = True) -> Iterator[tuple[dict[str, Any], bool]]:
    """Comparisons and plain values of a condition, each with the value that would help to make it `wanted`."""
    if condition["kind"] in ("and", "or"):
        for part in condition["parts"]:
            yield from leaves(part, wanted)
    elif condition["kind"] in ("not", "call"):
        yield from leaves(condition["parts"][0], wanted if condition["kind"] == "call" else not wanted)
    else:
        yield condition, wanted


def number(side: dict[str, Any]) -> float | None:
    value = side["value"]
    if isinstance(value, dict):
        return {"inf": float("inf"), "-inf": float("-inf")}.get(str(value.get("number")))
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def quoted(side: dict[str, Any]) -> str:
    """step = 5120; a bare constant is its own text."""
    value = side["value"]
    shown = value.get("number") or value.get("type") or "?" if isinstance(value, dict) else repr(value)
    return shown if side["text"] == shown else f"{side['text']} = {shown}"
