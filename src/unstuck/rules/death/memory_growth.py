"""What grows in a process, as its own snapshots list it; its memory over time, and the limit above it."""

from __future__ import annotations

from unstuck.model import Case, MemoryCurve, MemoryGroup, Where
from unstuck.recorder.records.loops import Grower


def growers(case: Case, pid: int) -> list[Grower]:
    """What was growing at the latest snapshot of a process; the heaviest first."""
    last = next((snapshot for snapshot in reversed(case.growth_snapshots) if snapshot.pid == pid), None)
    growing = last.growing if last is not None else []
    return sorted(growing, key=lambda grower: (not grower.graph, -own_bytes(grower), -grower.now))


def own_bytes(grower: Grower) -> int:
    """Bytes that its own tensors gained; what their autograd graphs keep is not in it."""
    return grower.bytes * (grower.now - grower.first)


def grower_site(grower: Grower) -> Where:
    """The statement that fills it."""
    file, line, function = grower.site or (None, None, None)
    return Where(file=file, line=line, function=function, step=grower.step)


def grower_text(grower: Grower) -> str:
    """`penalty_history in main` grew from 12 to 220 tensors, 1 per step; each keeps its autograd graph."""
    more = "at least " if grower.capped else ""
    steps = f"between steps {grower.first_step:,} and {grower.step:,}"
    if grower.kind == "graph":
        return (
            f"the autograd graph of the tensor {grower.path} grew from {grower.first:,} to {more}{grower.now:,} nodes "
            f"{steps}: it reaches back through all of them"
        )
    elements = {"Tensor": "tensors", "": "elements"}.get(grower.holds, f"elements ({grower.holds})")
    what = "hooks" if grower.kind == "hooks" else elements
    rate = (grower.now - grower.first) / max(1, grower.step - grower.first_step)
    text = f"{grower.path} grew from {grower.first:,} to {more}{grower.now:,} {what} {steps}, {rate:.3g} per step"
    return text + (", each with its autograd graph" if grower.graph else "")


def grower_fix(grower: Grower) -> str:
    whole = grower.path.partition(" in ")[0]
    name = whole if grower.kind == "cache" else whole.partition(" of ")[0]
    if grower.kind == "graph" and "." in name:  # kept in an object, as a running mean is: no sum of losses
        return f"Update {name} with `.detach()`, or under `torch.no_grad()`: now each step adds its graph to it."
    if grower.kind == "graph":
        return f"Add a plain number to {name}: `{name} += loss.item()` (or `loss.detach()`), not the tensor itself."
    if grower.kind == "hooks":
        return "Register the hook once before the loop, or call `.remove()` on its handle in the same step."
    if grower.hook:
        return "Keep `output.detach()` in the hook, clear it every step, and remove the hook when it is done."
    if grower.kind == "cycle":
        return (
            "`itertools.cycle` keeps every batch of the first epoch: write a small generator with "
            "`while True: yield from loader` instead."
        )
    if grower.by_tensor:
        return (
            f"Keep no results by tensor in {name}: a batch is a new key each time, and never found again. Compute "
            "it anew, or use the sample's number as the key."
        )
    if grower.kind == "cache":
        return f"Bound {name}: `lru_cache(maxsize=…)`, or call its `cache_clear()` now and then."
    if grower.graph:
        return f"Keep the number, not the tensor: append `.item()` (or `.detach()`) to what goes into {name}."
    return f"Clear {name} once it has been used, or bound it (`collections.deque(maxlen=…)`)."


def memory_curve(case: Case, pid: int) -> MemoryCurve | None:
    return next((curve for curve in case.memory if curve.pid == pid and curve.points), None)


def cgroups(case: Case, pid: int) -> list[MemoryGroup]:
    """Cgroups around a process, the narrowest limit first; without the entry that stands for the machine."""
    around = [group for group in case.groups if group.version and pid in group.pids]
    return sorted(around, key=lambda group: (group.limit is None, group.limit or 0))


def whole_machine(case: Case) -> MemoryGroup | None:
    return next((group for group in case.groups if not group.version), None)
