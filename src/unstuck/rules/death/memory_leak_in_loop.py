"""memory-leak-in-loop: memory rises with every step, because something keeps what each step makes.

What it sees
    The memory of the training rises linearly with the step and goes on rising, and something reachable from the
    training's own names is longer at every answer: tensors kept with their autograd graphs (`losses.append(loss)`), a
    running total that is a tensor (`total += loss`), activations kept by a hook, hooks registered in every step,
    batches kept by `itertools.cycle`.

Why it matters
    Each kept loss keeps the graph behind it, and with it the activations of its step. Memory is finite: sooner or
    later the kernel kills the run, or an allocation fails; until then it crowds out everything else.

Evidence
    Memory at the first and the last step seen and what that makes a step; the container that grows, its length then
    and now, the statement that fills it; when the limit will be reached at this pace.

Fix
    Keep numbers, not graphs: `loss.item()` or `loss.detach()`. Remove hooks, clear what has been used, and loop over
    the loader anew instead of `itertools.cycle`.

When it is wrong
    Plain tensors in a list may be a replay buffer on its way to its full size, or predictions of one pass: of these
    nothing is said unless the limit is near. A warm-up of the allocator is no growth: it does not go on, and nothing
    grows with it. Losses of one long episode that are kept on purpose, and cleared at its end, look the same for as
    long as the episode lasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unstuck.model import Case, Finding, Fix, MemoryPoint, Severity
from unstuck.recorder.records.growth import Grower, GrowthSnapshot
from unstuck.rules.death import memory
from unstuck.rules.death.holders import holders, place, sentence
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

NOTABLE = 16e6
"""Bytes of growth that count as a cost; less is a note."""
KEPT_BATCHES = 64e6
GOOD_PART = 0.3
"""Share of the growth that kept tensors must account for."""
ANSWERS = 2
"""So many times in a row it must have been found longer: three lengths, each greater than the one before."""
STRAIGHT = 0.8
"""Least share of the variation that a straight line over the steps explains."""
NEAR = 600.0


@dataclass(frozen=True, slots=True)
class Rise:
    first: MemoryPoint
    last: MemoryPoint
    a_step: float
    left: float | None
    """Seconds until the limit at this pace; None: no limit known, or not rising."""
    limit: int
    full: float
    """Share of the limit that the run's processes hold."""
    device: bool = False
    """Memory of the GPU."""

    @property
    def bytes(self) -> int:
        return self.last.rss - self.first.rss


def decide(case: Case) -> Iterable[Finding]:
    for pid in dict.fromkeys(snapshot.pid for snapshot in case.growth_snapshots):
        for holder in holders(case, pid):
            rise = steady_rise(case, pid, holder.first_step) or device_rise(case, pid, holder.first_step)
            if holder.times < ANSWERS or rise is None:
                continue
            loud = _severity(case, holder, rise)
            if loud is not None:
                yield _finding(case, pid, holder, rise, loud)
                break


def steady_rise(case: Case, pid: int, since_step: int) -> Rise | None:
    """Memory against the step, from the time the holder was first seen: a straight line that has not levelled off."""
    points = _by_step(_points(case, pid), since_step)
    slope = straight(points)
    if slope is None:
        return None
    first, last = points[0], points[-1]
    group = memory.limit_of(case, pid)
    limit = (group.limit or 0) if group is not None else 0
    held = sum(curve.points[-1].rss for curve in case.memory if curve.points and group and curve.pid in group.pids)
    held = max(held, group.usage if group is not None and not group.version else 0)
    pace = (last.rss - first.rss) / max(1e-3, last.at - first.at)
    left = max(0.0, limit - held) / pace if limit and pace > 0 else None
    return Rise(first, last, slope, left, limit, held / limit if limit else 0.0)


def device_rise(case: Case, pid: int, since_step: int) -> Rise | None:
    """The same of the GPU's memory, as the process said at each answer."""
    told = [MemoryPoint(each.at, each.device, each.step) for each in _snapshots(case, pid) if each.device]
    points = _by_step(told, since_step)
    slope = straight(points)
    return None if slope is None else Rise(points[0], points[-1], slope, None, 0, 0.0, device=True)


def _by_step(points: list[MemoryPoint], since: int) -> list[MemoryPoint]:
    return sorted({p.step: p for p in points if p.step >= since}.values(), key=lambda p: p.step)


def straight(points: list[MemoryPoint]) -> float | None:
    """Bytes a step, if the points lie on a straight line that rises to its end."""
    if len(points) < 4:
        return None
    slope, explained = fit(points)
    half = points[len(points) // 2 :]
    late = fit(half)[0] if len(half) > 2 else (half[-1].rss - points[0].rss) / (half[-1].step - points[0].step)
    return None if slope <= 0 or explained < STRAIGHT or late < 0.4 * slope else slope


def fit(points: list[MemoryPoint]) -> tuple[float, float]:
    """Slope of the straight line through the points, in bytes a step, and how much of their variation it explains."""
    count = len(points)
    mean_x = sum(p.step for p in points) / count
    mean_y = sum(p.rss for p in points) / count
    xx = sum((p.step - mean_x) ** 2 for p in points)
    yy = sum((p.rss - mean_y) ** 2 for p in points)
    xy = sum((p.step - mean_x) * (p.rss - mean_y) for p in points)
    return (xy / xx, xy * xy / (xx * yy)) if xx and yy else (0.0, 0.0)


def _points(case: Case, pid: int) -> list[MemoryPoint]:
    """The curve as seen from outside, and what the process said of itself at each answer."""
    curve = memory.curve_of(case, pid)
    told = [MemoryPoint(each.at, each.rss, each.step) for each in _snapshots(case, pid) if each.rss]
    return [*(curve.points if curve else ()), *told]


def _snapshots(case: Case, pid: int) -> list[GrowthSnapshot]:
    return [each for each in case.growth_snapshots if each.pid == pid]


def _severity(case: Case, holder: Grower, rise: Rise) -> Severity | None:
    part = holder.bytes * (holder.now - holder.first) / max(1, rise.bytes)
    fault = holder.graph or holder.kind == "hooks"
    kept = part >= GOOD_PART and rise.bytes >= KEPT_BATCHES and (holder.hook or holder.kind == "cycle")
    near = rise.left is not None and rise.left < NEAR and rise.full > 0.85
    if fault and _died_of_it(case):
        return "error"  # while it runs it may still come to its end: nobody should stop it for this
    if (fault and rise.bytes >= NOTABLE) or kept or (near and part >= GOOD_PART):
        return "warning"
    return "info" if fault and rise.bytes >= NOTABLE / 8 else None


def _died_of_it(case: Case) -> bool:
    """An allocation failed, and nobody caught the exception."""
    if case.outcome != "died":
        return False
    raised = [died.raised for died in case.deaths]
    return any(each.type == "MemoryError" or "t allocate memory" in each.message for each in raised)


def _finding(case: Case, pid: int, holder: Grower, rise: Rise, severity: Severity) -> Finding:
    flight = case.flight_of(pid)
    first, last = rise.first, rise.last
    evidence = [
        f"{_which(rise)} of {memory.who(case, pid)} went from {memory.size(first.rss)} at step {first.step:,} to "
        f"{memory.size(last.rss)} at step {last.step:,}, in a straight line that goes on",
        sentence(holder),
    ]
    if not holder.graph and holder.bytes:
        kept = holder.bytes * (holder.now - holder.first)
        evidence.append(f"its own tensors make {memory.size(kept)} of the growth of {memory.size(rise.bytes)}")
    if rise.left is not None and rise.left < 86_400:
        evidence.append(f"at this pace the {memory.size(rise.limit)} there are will be full in {seconds(rise.left)}")
    if _died_of_it(case):
        evidence.append("in the end an allocation failed")
    return RULE.finding(
        severity=severity,
        confidence=0.95 if holder.graph and holder.times > ANSWERS else 0.85,
        title=f"{_which(rise)} grows by {memory.size(rise.a_step)} every step: {_keeps(holder)}",
        evidence=tuple(evidence),
        where=replace(
            place(holder),
            pid=pid,
            rank=flight.rank if flight else None,
            step=flight.step if flight else holder.step,
        ),
        fix=Fix(memory.remedy(holder)),
        seen_by="flight",
    )


def _which(rise: Rise) -> str:
    return "GPU memory" if rise.device else "memory"


def _keeps(holder: Grower) -> str:
    if holder.kind == "graph":
        return f"the graph of {holder.path} reaches back through every step"
    if holder.kind == "hooks":
        return f"{holder.path} are registered again and again"
    if holder.kind == "cycle":
        return "itertools.cycle keeps every batch it has handed out"
    what = "tensors with their autograd graphs" if holder.graph else "tensors" if holder.bytes else "elements"
    return f"{holder.path} keeps {holder.now:,} {what}"


RULE = Rule("memory-leak-in-loop", "death", decide, gathers=True)
