"""Memory over time in plain words: how far a process grew, which limit stands above it, what to do about a holder."""

from __future__ import annotations

from unstuck.model import Case, MemoryCurve, MemoryGroup, MemoryPoint
from unstuck.recorder.records.loops import Grower
from unstuck.text import size as size

NEAR = 0.95
"""Share of a limit at which it counts as reached."""


def curve_of(case: Case, pid: int) -> MemoryCurve | None:
    return next((curve for curve in case.memory if curve.pid == pid and curve.points), None)


def trained_part(curve: MemoryCurve) -> tuple[MemoryPoint, ...]:
    """From the first step on; the whole curve where no step was counted. Importing torch is no growth."""
    stepped = tuple(point for point in curve.points if point.step)
    return stepped if len(stepped) > 1 else curve.points


def growth(curve: MemoryCurve) -> int:
    part = trained_part(curve)
    return part[-1].rss - part[0].rss


def grew(curve: MemoryCurve) -> str:
    """`from 312 MB at step 1 to 1.9 GB at step 240, 6.6 MB a step`."""
    part = trained_part(curve)
    first, last = part[0], part[-1]
    if not last.step > first.step:
        return f"from {size(first.rss)} to {size(last.rss)} in {last.at - first.at:.0f} s"
    rate = (last.rss - first.rss) / (last.step - first.step)
    a_step = f", {size(rate)} a step" if rate > 0 else ""
    return f"from {size(first.rss)} at step {first.step:,} to {size(last.rss)} at step {last.step:,}{a_step}"


def groups_of(case: Case, pid: int) -> list[MemoryGroup]:
    """Cgroups around a process, the narrowest limit first; without the one that stands for the machine."""
    around = [group for group in case.groups if group.version and pid in group.pids]
    return sorted(around, key=lambda group: (group.limit is None, group.limit or 0))


def machine(case: Case) -> MemoryGroup | None:
    return next((group for group in case.groups if not group.version), None)


def limit_of(case: Case, pid: int) -> MemoryGroup | None:
    """The narrowest limit above a process: of a cgroup, else the machine's own memory."""
    return next((group for group in groups_of(case, pid) if group.limit), machine(case))


def who(case: Case, pid: int) -> str:
    """worker 1 (pid 77), rank 0 (pid 9), the main process (pid 5)."""
    flight = case.flight_of(pid)
    if flight is not None and flight.role == "worker":
        return f"worker{'' if flight.worker is None else f' {flight.worker}'} (pid {pid})"
    if flight is not None and flight.role == "rank" and flight.rank is not None:
        return f"rank {flight.rank} (pid {pid})"
    main = pid == case.root or (flight is not None and flight.role in ("main", "rank"))
    return f"the main process (pid {pid})" if main else f"process {pid}"


def remedy(holder: Grower) -> str:
    """One thing to do about what grows."""
    name = holder.path.partition(" in ")[0].partition(" of ")[0]
    if holder.kind == "graph":
        return f"Add a plain number to {name}: `{name} += loss.item()` (or `loss.detach()`), not the tensor itself."
    if holder.hook and holder.kind != "hooks":
        return "Keep `output.detach()` of what the hook sees, clear it every step, and remove the hook when done."
    if holder.kind == "hooks":
        return "Register the hook once before the loop, or call `.remove()` on its handle in the same step."
    if holder.kind == "cycle":
        return (
            "`itertools.cycle` keeps every batch of the first pass: write a small generator with "
            "`while True: yield from loader` instead."
        )
    if holder.graph:
        return f"Keep the number, not the tensor: append `.item()` (or `.detach()`) to what goes into {name}."
    return f"Clear {name} once it has been used, or bound it (`collections.deque(maxlen=…)`)."
