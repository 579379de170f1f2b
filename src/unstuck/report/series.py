"""What was measured over the run, as columns of numbers: loss, rates, norms, steps, memory, layers, workers.

Bounded: an hour's run, a million steps, a thousand processes give no more than some thousands of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from unstuck.model import Case, Flight, MemoryCurve, Step
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.loaders import DataWait
from unstuck.report.curve import points_of
from unstuck.report.layer_grid import layer_grid
from unstuck.text import spot

MAX_POINTS = 240  # of a curve: more than one for every two pixels that a phone has
MAX_CURVES = 6  # of a kind: losses, ranks, processes; more cannot be told apart
MAX_WORKERS = 32
MAX_FETCHES = 48  # of each worker, the last ones

Plain = dict[str, Any]


def series(case: Case) -> Plain:
    """Seconds (`at`) count from the start of the run. A number that is NaN or Inf is null."""
    learnings = [learning for learning in case.learnings if learning.losses or learning.optimizers]
    learnings = learnings[:MAX_CURVES]
    return {
        "loss": [curve for learning in learnings for curve in _losses(case, learning)][:MAX_CURVES],
        "rate": [curve for learning in learnings for curve in _rates(case, learning)][:MAX_CURVES],
        "gradient_norm": [curve for learning in learnings[:MAX_CURVES] if (curve := _gradient_norm(case, learning))],
        "steps": _steps(case),
        "waits": _waits(case),
        "memory": _memory(case),
        "layers": [grid for learning in learnings[:1] if (grid := layer_grid(learning))],
        "workers": _workers(case),
    }


def number(value: float) -> float | int | None:
    """Six digits: more would only make the file larger."""
    if not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.6g}")


def kept(values: Sequence[float], most: int = MAX_POINTS) -> list[int]:
    """Which of them to keep, so that a drawing looks the same: of each stretch the lowest and the highest."""
    if len(values) <= most:
        return list(range(len(values)))
    chosen, stretches = {0, len(values) - 1}, most // 2 - 1
    for stretch in range(stretches):
        places = range(len(values) * stretch // stretches, len(values) * (stretch + 1) // stretches)
        finite = [place for place in places if math.isfinite(values[place])] or list(places)
        chosen |= {min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)}
    return sorted(chosen)


def _curve(case: Case, pid: int, points: Sequence[tuple[float, float]], **about: object) -> Plain:
    chosen = [points[place] for place in kept([value for _, value in points])]
    flight = case.flight_of(pid)
    return {
        "pid": pid,
        "rank": flight.rank if flight is not None else None,
        **about,
        "step": [number(step) for step, _ in chosen],
        "value": [number(value) for _, value in chosen],
    }


# --- learning ------------------------------------------------------------------------------------------------


def _losses(case: Case, learning: Learning) -> Iterable[Plain]:
    for loss in sorted(learning.losses, key=lambda loss: -loss.count - loss.nonfinite):
        about = {
            "line": spot(loss.site[0], loss.site[1]) if loss.site else None,
            "mean_of": loss.stride,
            "nonfinite": loss.nonfinite,
            "nonfinite_step": loss.nonfinite_step if loss.nonfinite_step >= 0 else None,
        }
        yield _curve(case, learning.pid, points_of(learning, loss), **about)


def _rates(case: Case, learning: Learning) -> Iterable[Plain]:
    for optimizer in learning.optimizers:
        points = [(float(step), rate) for step, rate in optimizer.lrs]
        if points and points[-1][0] < learning.steps:  # it holds until now
            points.append((float(learning.steps), points[-1][1]))
        if points:
            yield _curve(case, learning.pid, points, optimizer=optimizer.kind)


def _gradient_norm(case: Case, learning: Learning) -> Plain | None:
    """Over all parameters together, at the steps in which most of them were looked at."""
    squares: dict[int, list[float]] = {}
    for parameter in learning.parameters:
        for step, norm in parameter.grads:
            squares.setdefault(step, []).append(norm * norm)
    most = max(map(len, squares.values()), default=0)
    points = [(float(step), math.sqrt(sum(s))) for step, s in sorted(squares.items()) if len(s) * 2 > most]
    return _curve(case, learning.pid, points) if len(points) > 1 else None


# --- time and memory -----------------------------------------------------------------------------------------


def _steps(case: Case) -> list[Plain]:
    """Thinned steps of the whole run, and where there are none, the last ones that the processes remember."""
    rings = {f.pid: f.steps for f in case.flights if f.role in ("main", "rank") and f.steps}
    trends = {trend.pid: trend.steps for trend in case.trends if trend.steps}
    shown = sorted({**rings, **trends}.items(), key=lambda item: (-len(item[1]), item[0]))
    return [_step_table(case, pid, steps) for pid, steps in shown[:MAX_CURVES]]


def _step_table(case: Case, pid: int, steps: Sequence[Step]) -> Plain:
    chosen = [steps[place] for place in kept([step.seconds for step in steps])]
    flight, began = case.flight_of(pid), _began(case)
    table: Plain = {"pid": pid, "rank": flight.rank if flight is not None else None}
    table["step"] = [step.number for step in chosen]
    table["at"] = [number(max(0.0, step.ended - began)) for step in chosen]
    for part in ("seconds", "data", "backward", "optimizer"):
        table[part] = [number(getattr(step, part)) for step in chosen]
    return table


def _waits(case: Case) -> list[Plain]:
    """What each loader has cost so far, the costliest first."""
    latest = {(wait.pid, wait.number): wait for wait in case.data_waits if wait.drawn}
    return [_wait(wait) for wait in sorted(latest.values(), key=lambda wait: -wait.waited)[:MAX_CURVES]]


def _wait(wait: DataWait) -> Plain:
    return {
        "pid": wait.pid,
        "loader": wait.number,
        "line": spot(wait.site[0], wait.site[1]) if wait.site else None,
        "batches": wait.drawn,
        "waited": number(wait.waited),
        "longest": number(wait.longest),
        "seconds": number(wait.seconds),
    }


def _memory(case: Case) -> list[Plain]:
    """Of the largest processes."""

    def peak(curve: MemoryCurve) -> int:
        return max((point.rss for point in curve.points), default=0)

    curves = sorted(case.memory, key=lambda curve: (curve.pid != case.root, -peak(curve)))[:MAX_CURVES]
    began, shown = _began(case), []
    for curve in curves:
        points = [curve.points[place] for place in kept([point.rss for point in curve.points])]
        flight = case.flight_of(curve.pid) or Flight(curve.pid)
        shown.append(
            {
                "pid": curve.pid,
                "role": flight.role,
                "worker": flight.worker,
                "rank": flight.rank,
                "at": [number(max(0.0, point.at - began)) for point in points],
                "bytes": [point.rss for point in points],
                "step": [point.step for point in points],
            }
        )
    return shown


def _workers(case: Case) -> list[Plain]:
    """Who made which batch when, and what each is at."""
    flights = [flight for flight in case.flights if flight.role == "worker" and (flight.fetches or flight.fetching)]
    latest = sorted(flights, key=lambda flight: -flight.began)[:MAX_WORKERS]
    return [_worker(case, flight) for flight in sorted(latest, key=lambda flight: (flight.worker or 0, flight.began))]


def _worker(case: Case, flight: Flight) -> Plain:
    began, fetches = _began(case), flight.fetches[-MAX_FETCHES:]
    since = flight.sample_since or flight.since
    return {
        "pid": flight.pid,
        "worker": flight.worker,
        "alive": flight.alive,
        "at": [number(max(0.0, fetch.ended - fetch.seconds - began)) for fetch in fetches],
        "seconds": [number(fetch.seconds) for fetch in fetches],
        "sample": [fetch.sample for fetch in fetches],
        "samples": [fetch.samples for fetch in fetches],
        "failed": [place for place, fetch in enumerate(fetches) if fetch.failed],
        "now": {
            "sample": flight.sample if flight.sample is not None else (flight.sample_key or None),
            "at": number(max(0.0, since - began)),
            "seconds": number(max(0.0, _last_known(case, flight) - since)),
        }
        if flight.fetching
        else None,
    }


def _last_known(case: Case, flight: Flight) -> float:
    """When it was last known to be at it: a dead one until its memory was last read."""
    if flight.alive:
        return case.now
    points = [point.at for curve in case.memory if curve.pid == flight.pid for point in curve.points[-1:]]
    return max(points, default=flight.sample_since)


def _began(case: Case) -> float:
    return case.now - case.seconds
