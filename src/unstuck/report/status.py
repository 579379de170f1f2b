"""The one-line status of a run that stands still; needs nothing but text, for it is drawn often."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

from unstuck.model import Case, Flight, Phase, Stall
from unstuck.report.wording import clean, duration

_MISSING: dict[Phase, str] = {
    "start": "no first step",
    "data": "no batch",
    "fetch": "no sample",
    "backward": "no end of backward",
    "optimizer": "no end of the optimizer step",
}


def render_status(stall: Stall, case: Case, width: int, unicode: bool = True) -> str:
    """`unstuck: no batch for 12 s · waiting for worker 1 · sample 4711 · looking …`"""
    parts = [f"unstuck: {standing(stall)}", *doing(stall, case), f"{stall.excuse}, not counted" if stall.excuse else ""]
    line = clean(" · ".join(part for part in parts if part) + ("" if stall.excuse else " · looking …"), unicode)
    ellipsis = "…" if unicode else "..."
    # The last column stays free: a full line would wrap, and could not be wiped.
    return line if len(line) < width else line[: max(0, width - 1 - len(ellipsis))] + ellipsis


def standing(stall: Stall) -> str:
    return f"{_MISSING.get(stall.phase, 'no step')} for {duration(stall.standing)}"


def doing(stall: Stall, case: Case) -> list[str]:
    """What the stalled process is at, from the flight files alone."""
    flight = next((flight for flight in case.flights if flight.pid == stall.pid), None)
    if flight is None:
        return []
    said = [f"rank {flight.rank}"] if flight.rank is not None else []
    if stall.phase == "data" and not flight.fetching:
        # Batches come in order: main waits for the worker that has been at its own the longest.
        fetching = [f for f in case.flights if f.role == "worker" and f.fetching]
        worker = min(fetching, key=lambda f: f.moved or f.since, default=None)
        if worker is not None and worker.worker is not None:
            return [*said, f"waiting for worker {worker.worker}", *_sample(worker)]
    return [*said, *_sample(flight)]


def _sample(flight: Flight) -> list[str]:
    if flight.sample is not None:
        return [f"sample {flight.sample}"]
    return [f"sample {flight.sample_key}"] if flight.sample_key else []


# --- what a stream can show ----------------------------------------------------------------------------------


def wants_color(stream: TextIO) -> bool:
    """Colour only on a terminal that has it, and never against NO_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return _is_terminal(stream)


def wants_unicode(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")


def width_of(stream: TextIO) -> int:
    """Columns to use: the terminal's own, at most 100, for longer lines are hard to read; 80 elsewhere."""
    if not _is_terminal(stream):
        return 80
    return min(100, shutil.get_terminal_size((80, 24)).columns)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (ValueError, AttributeError):
        return False
