"""What starting processes anew costs a training that starts them itself, each with an interpreter and its imports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

from unstuck.model import Case, StepTrend
from unstuck.recorder.records import Site
from unstuck.recorder.records.loaders import ProcessReady, ProcessStarting

MIN_ROUNDS = 3


@dataclass(frozen=True)
class Restarts:
    """One training, and how long it stood still for new interpreters between its first step and its last."""

    pid: int
    rounds: int
    processes: int  # in all of them
    lost: float  # seconds
    seconds: float  # from the first step to the last,
    steps: int  # and how many there were
    site: Site


def own_restarts(case: Case) -> Iterator[Restarts]:
    workers = {pid for started in case.workers_started for pid in started.pids}
    for trend in case.trends:
        ready = [each for each in case.processes_ready if each.parent == trend.pid and each.pid not in workers]
        if trend.steps and ready:
            yield from _of(trend, ready, [each for each in case.processes_starting if each.pid == trend.pid])


def _of(trend: StepTrend, ready: list[ProcessReady], starting: list[ProcessStarting]) -> Iterator[Restarts]:
    first, last = trend.steps[0], trend.steps[-1]
    rounds: dict[tuple[int, Site], list[ProcessReady]] = {}  # by the step before
    for new in ready:
        start = next((each for each in reversed(starting) if each.at <= new.began), None)
        if start is not None and start.site is not None and first.ended < new.began < last.ended:
            rounds.setdefault((start.step, start.site), []).append(new)
    if len(rounds) < MIN_ROUNDS:
        return
    began = [new.began for each in rounds.values() for new in each]
    usual = [step.seconds for step in trend.steps[1:] if not any(0 <= step.ended - at < step.seconds for at in began)]
    seconds, steps = last.ended - first.ended, last.number - first.number
    waited = sum(min(new.at for new in each) - min(new.began for new in each) for each in rounds.values())
    if usual:  # what its steps take themselves is not lost: they may go on while processes start
        lost = min(waited, seconds - steps * mean(usual))
        site = list(rounds)[-1][1]
        yield Restarts(trend.pid, len(rounds), len(began), max(0.0, lost), seconds, steps, site)
