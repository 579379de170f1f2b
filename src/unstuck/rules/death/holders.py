"""What grows in a process, as it answered itself: containers and graphs, with their length at each answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unstuck.model import Case, Where


@dataclass(frozen=True, slots=True)
class Holder:
    """One container (or one tensor's graph) that was longer at every answer than at the one before."""

    path: str
    """`penalty_history in main`, `self.history of Trainer`."""
    kind: str
    """list, dict, deque, itertools.cycle, hooks, or `graph`: the autograd graph of one tensor."""
    holds: str
    """Type of its elements."""
    graph: bool
    """Its tensors carry an autograd graph."""
    size: int
    """Bytes of an element's own tensors, as sampled; what their graphs keep is not in it."""
    first: int
    first_step: int
    now: int
    step: int
    times: int
    """Answers in a row that found it longer."""
    capped: bool = False
    """There is more of it than was counted."""
    hook: bool = False
    """It is reached through a hook of a module: activations are kept."""
    file: str | None = None
    line: int | None = None
    function: str | None = None

    @property
    def rate(self) -> float:
        """Elements a step."""
        return (self.now - self.first) / max(1, self.step - self.first_step)

    @property
    def where(self) -> Where:
        return Where(file=self.file, line=self.line, function=self.function, step=self.step)

    @property
    def sentence(self) -> str:
        """`penalty_history in main` grew from 12 to 220 tensors, 1 a step; each carries its autograd graph."""
        more = "at least " if self.capped else ""
        if self.kind == "graph":
            return (
                f"the autograd graph of the tensor {self.path} grew from {self.first:,} to {more}{self.now:,} nodes "
                f"between steps {self.first_step:,} and {self.step:,}: it reaches back through all of them"
            )
        things = {"Tensor": "tensors", "hooks": "hooks", "": "elements"}.get(self.holds, f"elements ({self.holds})")
        said = (
            f"{self.path} grew from {self.first:,} to {more}{self.now:,} {things} between steps "
            f"{self.first_step:,} and {self.step:,}, {self.rate:.3g} a step"
        )
        return said + (", each with its autograd graph" if self.graph else "")


def holders(case: Case, pid: int) -> list[Holder]:
    """What the latest answer of a process says that grows; what weighs most first."""
    answers = [fact.data for fact in case.facts if fact.kind == "growth" and fact.pid == pid]
    if not answers:
        return []
    found = [_holder(raw, answers[-1]) for raw in answers[-1].get("growing", ())]
    return sorted(found, key=lambda h: (not h.graph, -h.size * (h.now - h.first), -h.now))


def _holder(raw: dict[str, Any], answer: dict[str, Any]) -> Holder:
    site = raw.get("site") or (None, None, None)
    return Holder(
        path=str(raw["path"]),
        kind=str(raw["kind"]),
        holds=str(raw.get("holds", "")),
        graph=bool(raw.get("graph")),
        size=int(raw.get("bytes", 0)),
        first=int(raw["first"]),
        first_step=int(raw["first_step"]),
        now=int(raw["now"]),
        step=int(answer["step"]),
        times=int(raw["times"]),
        capped=bool(raw.get("capped")),
        hook=bool(raw.get("hook")),
        file=site[0],
        line=site[1],
        function=site[2],
    )
