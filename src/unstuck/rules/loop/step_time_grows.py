"""step-time-grows: every step takes longer than the one before.

What it sees
    The CPU time of a step rises steadily and evenly with its number over hundreds of steps, to more than twice what it
    was, while the batches stay as large as they were. CPU time, not wall-clock time: a busy neighbour slows a step down
    but does not make it compute more.

Why it matters
    The work of a step grows with all the steps before it: a list that is walked every time, hooks registered again
    and again, a graph that reaches back. The total grows with the square of the steps, so the end moves away.

Evidence
    CPU time of a step in each quarter of the run, the part of the step that grew, the size of a batch then and now,
    and what grows in the process, where its own snapshots show it.

Fix
    Do not walk through what all former steps left behind: keep a running sum, register hooks once, clear lists.

When it is wrong
    Longer sequences and larger batches: where batches grow nothing is reported. Where no DataLoader shows their size
    something else must be seen to grow, and even then this is information, not a warning: a curriculum or a buffer on
    its way to its full size would look the same. Hooks, and a tensor that each step is joined with more, are proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, quantiles

from unstuck.model import Case, Finding, Fix, Step, Where
from unstuck.recorder.records.loops import Grower
from unstuck.rules.death.memory_growth import grower_fix, grower_site, grower_text, growers
from unstuck.rules.rule import Rule
from unstuck.rules.words import process_name, seconds

WARM_UP_STEPS = 10
MIN_STEPS = 200
MIN_STEPS_PER_QUARTER = 4
MIN_RATIO = 2.5  # of the last quarter to the first
MIN_RATIO_JOINED = 4.0  # the same, where a tensor grows: a buffer that fills up is not that long
MIN_QUARTER_RATIO = 1.1  # of each quarter to the one before: what has levelled off is not growing
MIN_LATE_SHARE = 0.5  # of the rise, after the second quarter (a line has two thirds): cold caches make one jump
MIN_RISE_SECONDS = 1.5e-3  # of CPU time: less is within what a busy machine adds to a step
MAX_SIZE_RATIO = 1.15  # of the batches, last to first: larger ones explain longer steps
PARTS = {
    "data": "waiting for the batch",
    "backward": "the backward pass",
    "optimizer": "the optimizer's step",
    "between": "the forward pass and the rest of the loop",
}
Quarter = list[Step]


def decide(case: Case) -> Iterable[Finding]:
    rings = {flight.pid: flight.steps for flight in case.flights if flight.role != "worker" and flight.steps}
    for pid, steps in {**rings, **{trend.pid: trend.steps for trend in case.trends}}.items():
        quarters = _quarters(steps)
        if not quarters or not _rises_evenly(quarters):
            continue
        first, last = _size(quarters[0]), _size(quarters[3])
        size_known = min(first, last) > 0
        grower = next((grower for grower in _suspects(case, pid) if grower.times >= 2), None)
        larger = size_known and last > MAX_SIZE_RATIO * first
        if not larger and (size_known or grower is not None):  # else longer sequences would look the same
            yield _finding(case, pid, quarters, grower)


def _quarters(steps: Sequence[Step]) -> list[Quarter]:
    """The quarters of the run after its warm-up; empty if it is too short to tell."""
    steps = [step for step in steps if step.number > WARM_UP_STEPS and step.cpu > 0]
    if not steps or steps[-1].number - steps[0].number < MIN_STEPS:
        return []
    first, last = steps[0].number, steps[-1].number
    quarters: list[Quarter] = [[], [], [], []]
    for step in steps:
        quarters[min(3, 4 * (step.number - first) // (last - first))].append(step)
    return quarters if min(map(len, quarters)) >= MIN_STEPS_PER_QUARTER else []


def _rises_evenly(quarters: list[Quarter]) -> bool:
    """The CPU time of a step rises from quarter to quarter, to more than twice what it was."""
    medians = [_cpu(quarter) for quarter in quarters]
    rise = medians[3] - medians[0]
    return (
        all(later >= MIN_QUARTER_RATIO * earlier for earlier, later in pairwise(medians))
        and medians[3] >= MIN_RATIO * medians[0]
        and rise >= MIN_RISE_SECONDS
        and medians[3] - medians[1] >= MIN_LATE_SHARE * rise
        and _quartile(quarters[3], 0) > _quartile(quarters[0], 2)
    )


def _cpu(steps: Quarter) -> float:
    return median(step.cpu for step in steps)


def _quartile(steps: Quarter, number: int) -> float:
    return quantiles([step.cpu for step in steps], method="inclusive")[number]


def _size(steps: Quarter) -> float:
    sizes = [step.size for step in steps if step.size]
    return median(sizes) if sizes else 0.0


def _grown_part(quarters: list[Quarter]) -> str:
    """The part of a step that has become longer by most."""

    def seconds_of(part: str, quarter: Quarter) -> float:
        between = part == "between"
        return median(s.seconds - s.data - s.backward - s.optimizer if between else getattr(s, part) for s in quarter)

    return PARTS[max(PARTS, key=lambda part: seconds_of(part, quarters[3]) - seconds_of(part, quarters[0]))]


def _finding(case: Case, pid: int, quarters: list[Quarter], grower: Grower | None) -> Finding:
    flight, first, last = case.flight_of(pid), quarters[0][0].number, quarters[3][-1].number
    small, large = _size(quarters[0]), _size(quarters[3])
    size_known = min(small, large) > 0
    where = grower_site(grower) if grower is not None and grower.site else _loop_site(case, pid)
    joined = (
        grower is not None and grower.kind == "tensor" and _cpu(quarters[3]) >= MIN_RATIO_JOINED * _cpu(quarters[0])
    )
    proven = joined or (grower is not None and grower.kind == "hooks")
    return RULE.finding(
        severity="warning" if size_known or proven else "info",
        confidence=0.9 if size_known or proven else 0.6,
        title="each step takes longer than the one before, by now "
        f"{_cpu(quarters[3]) / _cpu(quarters[0]):.1f} times as long as at first",
        evidence=(
            f"CPU time of a step of {process_name(case, pid)}, by quarters of steps {first:,} to {last:,}: "
            + ", ".join(seconds(_cpu(quarter)) for quarter in quarters),
            f"the part that grew is {_grown_part(quarters)}",
            f"the batches did not grow: {small:,.0f} elements at first, {large:,.0f} at last" if size_known else "",
            grower_text(grower) if grower is not None else "",
        ),
        where=replace(where, pid=pid, rank=flight.rank if flight else None, step=flight.step if flight else last),
        fix=Fix(_fix(grower, _grown_part(quarters))),
        seen_by="flight",
    )


def _suspects(case: Case, pid: int) -> list[Grower]:
    """Hooks first, then graphs and tensors, then what is longest: work that grows walks through something that does.
    Nobody walks through the cache of a function."""
    order = ("hooks", "graph", "tensor", "container", "cycle")
    walked = (each for each in growers(case, pid) if each.kind in order)
    return sorted(walked, key=lambda each: (order.index(each.kind), -each.now))


def _fix(grower: Grower | None, part: str) -> str:
    if grower is None:
        return f"Find what in {part} depends on the steps before: a list walked, hooks, a graph."
    if grower.kind == "hooks" or grower.graph:
        return grower_fix(grower)
    name = grower.path.partition(" in ")[0]
    if grower.kind == "tensor":
        return f"Keep only the newest part of {name} when you join it with more (`torch.cat([new, {name}])[:size]`)."
    return f"Do not walk through all of {name} in every step: keep a running value, or bound it (deque(maxlen=…))."


def _loop_site(case: Case, pid: int) -> Where:
    """The training loop, as the process described it."""
    frames = (snapshot.frames for snapshot in reversed(case.loop_snapshots) if snapshot.pid == pid)
    frame = next((frames[0] for frames in frames if frames), None)
    if frame is None:
        return Where()
    return Where(file=frame.file, line=frame.loops[-1].first if frame.loops else frame.line, function=frame.function)


RULE = Rule("step-time-grows", "loop", decide, gathers=True)
