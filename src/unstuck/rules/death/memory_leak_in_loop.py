"""memory-leak-in-loop: memory rises with every step, because something keeps what each step makes.

What it sees
    The memory of the training rises linearly with the steps and does not level off, and something that the training
    can reach by name is longer at every snapshot: tensors kept with their autograd graphs (`losses.append(loss)`), a
    running total that is a tensor (`total += loss`), activations kept by a hook, hooks registered in every step,
    batches kept by `itertools.cycle`, results kept by `lru_cache` or in a dictionary under a tensor as their key, which
    no other tensor is equal to.

Why it matters
    Each kept loss keeps the graph behind it, and with it the activations of its step. Sooner or later the kernel kills
    the run, or an allocation fails; until then it crowds out everything else.

Evidence
    Memory at the first and the last step and the growth per step; the container that grows, its length then and now,
    the statement that fills it; when the limit will be reached at this rate.

Fix
    Keep numbers, not graphs: `loss.item()` or `loss.detach()`. Remove hooks, clear what has been used, and iterate the
    loader anew instead of `itertools.cycle`.

When it is wrong
    Plain tensors in a list may be a replay buffer that is filling up, or the predictions of one epoch: they are
    reported only when the limit is near. A warm-up of the allocator is not reported: it levels off, and nothing grows
    with it. Losses of one long episode that are kept on purpose, and cleared at its end, look the same for as long as
    the episode lasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unstuck.model import Case, Finding, MemoryPoint, Severity
from unstuck.recorder.records.loops import Grower
from unstuck.rules.death.memory_growth import (
    cgroups,
    grower_fix,
    grower_site,
    grower_text,
    growers,
    memory_curve,
    own_bytes,
    whole_machine,
)
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name, seconds, size

WARNING_BYTES = 16e6  # of growth by graphs or hooks: less is a note
NOTE_BYTES = WARNING_BYTES / 8
KEPT_BATCHES_BYTES = 64e6  # of growth by activations or batches without graphs
MIN_OWN_SHARE = 0.3  # of the growth, that kept tensors must account for
MIN_SNAPSHOTS = 2  # in a row that found it longer: three lengths, each greater than the one before
MIN_R_SQUARED = 0.8  # share of the variation that a straight line over the steps explains
LIMIT_NEAR_SECONDS = 600.0
LIMIT_NEAR_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class Rise:
    """Memory that rises in a straight line with the steps."""

    first: MemoryPoint
    last: MemoryPoint
    per_step: float
    what: str = "memory"
    limit: int = 0
    full: float = 0.0  # share of the limit that the run's processes hold
    seconds_left: float | None = None  # until the limit at this rate; None: no limit known

    @property
    def bytes(self) -> int:
        return self.last.rss - self.first.rss

    @property
    def near_limit(self) -> bool:
        left = self.seconds_left
        return left is not None and left < LIMIT_NEAR_SECONDS and self.full > LIMIT_NEAR_SHARE


def decide(case: Case) -> Iterable[Finding]:
    for pid in dict.fromkeys(snapshot.pid for snapshot in case.growth_snapshots):
        for grower in growers(case, pid):
            rise = _process_rise(case, pid, grower.first_step) or _gpu_rise(case, pid, grower.first_step)
            severity = _severity(case, grower, rise) if rise is not None and grower.times >= MIN_SNAPSHOTS else None
            if rise is not None and severity is not None:
                yield _finding(case, pid, grower, rise, severity)
                break


def _process_rise(case: Case, pid: int, since_step: int) -> Rise | None:
    """From the step at which the grower was first seen; seen from outside, and as the process says itself."""
    curve = memory_curve(case, pid)
    own = (MemoryPoint(each.at, each.rss, each.step) for each in case.growth_snapshots if each.pid == pid and each.rss)
    rise = _rise([*(curve.points if curve else ()), *own], since_step)
    group = next((group for group in cgroups(case, pid) if group.limit), whole_machine(case))
    if rise is None or group is None or not group.limit:
        return rise
    held = sum(curve.points[-1].rss for curve in case.memory if curve.points and curve.pid in group.pids)
    held = held if group.version else max(held, group.usage)
    rate = rise.bytes / max(1e-3, rise.last.at - rise.first.at)
    left = max(0.0, group.limit - held) / rate if rate > 0 else None
    return replace(rise, limit=group.limit, full=held / group.limit, seconds_left=left)


def _gpu_rise(case: Case, pid: int, since_step: int) -> Rise | None:
    snapshots = (each for each in case.growth_snapshots if each.pid == pid)
    rise = _rise([MemoryPoint(each.at, each.device, each.step) for each in snapshots if each.device], since_step)
    return replace(rise, what="GPU memory") if rise is not None else None


def _rise(points: list[MemoryPoint], since_step: int) -> Rise | None:
    """A straight line over the steps that still rises in its second half."""
    points = sorted({p.step: p for p in points if p.step >= since_step}.values(), key=lambda p: p.step)
    if len(points) < 4:
        return None
    slope, r_squared = _fit(points)
    half = points[len(points) // 2 :]
    late = _fit(half)[0] if len(half) > 2 else (half[-1].rss - points[0].rss) / (half[-1].step - points[0].step)
    if slope <= 0 or r_squared < MIN_R_SQUARED or late < 0.4 * slope:
        return None
    return Rise(points[0], points[-1], slope)


def _fit(points: list[MemoryPoint]) -> tuple[float, float]:
    """Slope of the straight line through the points, in bytes per step, and its R²."""
    count = len(points)
    mean_x = sum(p.step for p in points) / count
    mean_y = sum(p.rss for p in points) / count
    xx = sum((p.step - mean_x) ** 2 for p in points)
    yy = sum((p.rss - mean_y) ** 2 for p in points)
    xy = sum((p.step - mean_x) * (p.rss - mean_y) for p in points)
    return (xy / xx, xy * xy / (xx * yy)) if xx and yy else (0.0, 0.0)


def _severity(case: Case, grower: Grower, rise: Rise) -> Severity | None:
    fault = grower.graph or grower.kind == "hooks"
    accounts_for_it = own_bytes(grower) >= MIN_OWN_SHARE * max(1, rise.bytes)
    never_read = grower.hook or grower.kind == "cycle" or grower.by_tensor
    kept_batches = never_read and rise.bytes >= KEPT_BATCHES_BYTES
    if fault and _allocation_failed(case):
        return "error"  # while it runs it may still finish: nobody should stop it for this
    if (fault and rise.bytes >= WARNING_BYTES) or (accounts_for_it and (kept_batches or rise.near_limit)):
        return "warning"
    return "info" if fault and rise.bytes >= NOTE_BYTES else None


def _allocation_failed(case: Case) -> bool:
    raised = [died.raised for died in case.deaths] if case.outcome == "died" else []
    return any(each.type == "MemoryError" or "t allocate memory" in each.message for each in raised)


def _finding(case: Case, pid: int, grower: Grower, rise: Rise, severity: Severity) -> Finding:
    flight = case.flight_of(pid)
    first, last, left = rise.first, rise.last, rise.seconds_left
    kept = own_bytes(grower) if not grower.graph else 0
    return RULE.finding(
        severity=severity,
        confidence=0.95 if grower.graph and grower.times > MIN_SNAPSHOTS else 0.85,
        title=f"{rise.what} grows by {size(rise.per_step)} every step: {_keeps(grower)}",
        evidence=(
            f"{rise.what} of {process_name(case, pid)} rose from {size(first.rss)} at step {first.step:,} to "
            f"{size(last.rss)} at step {last.step:,}, in a straight line, and does not level off",
            grower_text(grower),
            f"its own tensors make {size(kept)} of the growth of {size(rise.bytes)}" if kept else "",
            f"at this rate the limit of {size(rise.limit)} is reached in {seconds(left)}"
            if left is not None and left < 86_400
            else "",
            "in the end an allocation failed" if _allocation_failed(case) else "",
        ),
        where=replace(
            grower_site(grower),
            pid=pid,
            rank=flight.rank if flight else None,
            step=flight.step if flight else grower.step,
        ),
        fix=grower_fix(grower),
    )


def _keeps(grower: Grower) -> str:
    if grower.kind == "graph":
        return f"the graph of {grower.path} reaches back through every step"
    if grower.kind == "hooks":
        return f"{grower.path} are registered again and again"
    if grower.kind == "cycle":
        return "itertools.cycle keeps every batch it has returned"
    if grower.by_tensor:
        return f"{grower.path} keeps {grower.now:,} results, and can't find one again: its keys are tensors"
    what = "tensors with their autograd graphs" if grower.graph else "tensors" if grower.bytes else "elements"
    return f"{grower.path} keeps {grower.now:,} {what}"


RULE = Rule("memory-leak-in-loop", "death", decide, gathers=True)
