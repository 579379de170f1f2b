"""step-time-grows: every step takes longer than the one before.

What it sees
    The processor time of a step rises steadily and evenly with its number over hundreds of steps, to more than twice
    what it was, while the batches stay as large as they were. Processor time, not time on the wall: a busy neighbour
    slows a step down but does not make it compute more.

Why it matters
    The work of a step grows with all the steps before it: a list that is gone through every time, hooks registered
    again and again, a graph that reaches back. The total grows with the square of the steps, so the end moves away.

Evidence
    Processor time of a step in each quarter of the run, the part of the step that grew, the size of a batch then and
    now, and what grows in the process, where it could say so.

Fix
    Do not go through what all former steps left behind: keep a running sum, register hooks once, clear lists.

When it is wrong
    Longer sequences and larger batches: where batches grow nothing is said. Where no DataLoader shows their size
    something else must be seen to grow, and even then this is information, not a warning: a curriculum or a buffer on
    its way to its full size would look the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from unstuck.model import Case, Finding, Fix, Step, Where
from unstuck.recorder.records.loops import Grower
from unstuck.rules.death.memory_growth import grower_fix, grower_site, grower_text, growers
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name, seconds

WARM_UP = 10
STEPS = 200
RATIO = 2.5
RISES = 1.1
"""Each quarter must need so much more than the one before: what has levelled off is not growing."""
EVEN = 0.5
"""So much of the rise must have come after the second quarter (two thirds, where it is a straight line): caches that
went cold and a processor that a neighbour slows make one jump."""
LEAST = 1.5e-3
"""Seconds of processor time by which a step must have grown: less is within what a busy machine adds to one."""
ENOUGH = 4
"""Steps seen in each quarter."""
SAME_SIZE = 1.15
PHASES = {
    "data": "waiting for the batch",
    "backward": "the backward pass",
    "optimizer": "the optimizer's step",
    "between": "the forward pass and the rest of the loop",
}


@dataclass(frozen=True, slots=True)
class Growth:
    quarters: tuple[float, ...]
    """Median processor seconds of a step in each quarter of the run."""
    first: int
    last: int
    phase: str
    sizes: tuple[float, float]
    """Median elements of a batch in the first and the last quarter; 0: not known."""

    @property
    def ratio(self) -> float:
        return self.quarters[-1] / self.quarters[0]


def decide(case: Case) -> Iterable[Finding]:
    for pid, steps in _series(case):
        growth = grows(steps)
        if growth is None:
            continue
        held = next((h for h in _suspects(case, pid) if h.times >= 2), None)
        if held is not None or min(growth.sizes) > 0:  # else longer sequences would look the same
            yield _finding(case, pid, growth, held)


def _series(case: Case) -> list[tuple[int, tuple[Step, ...]]]:
    known = {trend.pid: trend.steps for trend in case.trends}
    rings = {flight.pid: flight.steps for flight in case.flights if flight.role != "worker" and flight.steps}
    return list({**rings, **known}.items())


def grows(steps: Sequence[Step]) -> Growth | None:
    """None unless the processor time of a step rises evenly from quarter to quarter, to more than twice what it was."""
    steps = [step for step in steps if step.number > WARM_UP and step.cpu > 0]
    if not steps or steps[-1].number - steps[0].number < STEPS:
        return None
    first, last = steps[0].number, steps[-1].number
    quarters: list[list[Step]] = [[], [], [], []]
    for step in steps:
        quarters[min(3, 4 * (step.number - first) // (last - first))].append(step)
    if min(map(len, quarters)) < ENOUGH:
        return None
    medians = [median(step.cpu for step in quarter) for quarter in quarters]
    if any(later < RISES * earlier for earlier, later in pairwise(medians)) or medians[3] < RATIO * medians[0]:
        return None
    rise = medians[3] - medians[0]
    if rise < LEAST or medians[3] - medians[1] < EVEN * rise:
        return None
    if _quantile(quarters[3], 0.25) <= _quantile(quarters[0], 0.75):
        return None
    sizes = [median(sized) if (sized := [s.size for s in q if s.size]) else 0.0 for q in (quarters[0], quarters[3])]
    if min(sizes) > 0 and sizes[1] > SAME_SIZE * sizes[0]:
        return None
    return Growth(tuple(medians), first, last, _phase(quarters[0], quarters[3]), (sizes[0], sizes[1]))


def _quantile(steps: list[Step], share: float) -> float:
    ordered = sorted(step.cpu for step in steps)
    return ordered[int(share * (len(ordered) - 1))]


def _phase(early: list[Step], late: list[Step]) -> str:
    """The part of a step that has become longer by most."""

    def parts(steps: list[Step]) -> dict[str, float]:
        found = {name: median(getattr(s, name) for s in steps) for name in ("data", "backward", "optimizer")}
        return {**found, "between": median(s.seconds - s.data - s.backward - s.optimizer for s in steps)}

    before, after = parts(early), parts(late)
    return max(after, key=lambda name: after[name] - before[name])


def _finding(case: Case, pid: int, growth: Growth, held: Grower | None) -> Finding:
    known_size = min(growth.sizes) > 0
    flight = case.flight_of(pid)
    evidence = [
        f"processor time of a step of {process_name(case, pid)}, by quarters of steps {growth.first:,} to "
        f"{growth.last:,}: " + ", ".join(seconds(value) for value in growth.quarters),
        f"what grew is {PHASES[growth.phase]}",
    ]
    if known_size:
        evidence.append(
            f"the batches did not: {growth.sizes[0]:,.0f} elements at first, {growth.sizes[1]:,.0f} at last"
        )
    if held is not None:
        evidence.append(grower_text(held))
    where = grower_site(held) if held is not None and held.site else _loop_site(case, pid)
    return RULE.finding(
        severity="warning" if known_size or (held is not None and held.kind == "hooks") else "info",
        confidence=0.9 if known_size else 0.6,
        title=f"each step takes longer than the one before, {growth.ratio:.1f} times as long by now",
        evidence=tuple(evidence),
        where=replace(
            where, pid=pid, rank=flight.rank if flight else None, step=flight.step if flight else growth.last
        ),
        fix=Fix(_fix(held, growth)),
        seen_by="flight",
    )


def _suspects(case: Case, pid: int) -> list[Grower]:
    """Hooks first, then graphs, then what is longest: work that grows goes through something that does."""
    found = growers(case, pid)
    return sorted(found, key=lambda h: (h.kind != "hooks", h.kind != "graph", -h.now))


def _fix(held: Grower | None, growth: Growth) -> str:
    if held is not None and (held.kind == "hooks" or held.graph):
        return grower_fix(held)
    if held is not None:
        name = held.path.partition(" in ")[0]
        return f"Do not go through all of {name} in every step: keep a running value, or bound it (deque(maxlen=…))."
    return (
        f"Find what {PHASES[growth.phase]} does that depends on the steps before: a list gone through, hooks, a graph."
    )


def _loop_site(case: Case, pid: int) -> Where:
    """The training loop, as the process described it."""
    for snapshot in reversed(case.loop_snapshots):
        for frame in snapshot.frames if snapshot.pid == pid else ():
            line = frame.loops[-1].first if frame.loops else frame.line
            return Where(file=frame.file, line=line, function=frame.function)
    return Where()


RULE = Rule("step-time-grows", "loop", decide, gathers=True)
