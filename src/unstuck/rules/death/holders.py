"""What grows in a process, as it answered itself: containers and graphs, with their length at each answer."""

from __future__ import annotations

from unstuck.model import Case, Where
from unstuck.recorder.records.loops import Grower


def holders(case: Case, pid: int) -> list[Grower]:
    """What the latest answer of a process says that grows; what weighs most first."""
    last = next((snapshot for snapshot in reversed(case.growth_snapshots) if snapshot.pid == pid), None)
    found = last.growing if last is not None else []
    return sorted(found, key=lambda h: (not h.graph, -h.bytes * (h.now - h.first), -h.now))


def place(holder: Grower) -> Where:
    """The statement that fills it."""
    file, line, function = holder.site or (None, None, None)
    return Where(file=file, line=line, function=function, step=holder.step)


def sentence(holder: Grower) -> str:
    """`penalty_history in main` grew from 12 to 220 tensors, 1 a step; each carries its autograd graph."""
    more = "at least " if holder.capped else ""
    if holder.kind == "graph":
        return (
            f"the autograd graph of the tensor {holder.path} grew from {holder.first:,} to {more}{holder.now:,} nodes "
            f"between steps {holder.first_step:,} and {holder.step:,}: it reaches back through all of them"
        )
    things = {"Tensor": "tensors", "": "elements"}.get(holder.holds, f"elements ({holder.holds})")
    rate = (holder.now - holder.first) / max(1, holder.step - holder.first_step)
    said = (
        f"{holder.path} grew from {holder.first:,} to {more}{holder.now:,} "
        f"{'hooks' if holder.kind == 'hooks' else things} between steps "
        f"{holder.first_step:,} and {holder.step:,}, {rate:.3g} a step"
    )
    return said + (", each with its autograd graph" if holder.graph else "")
