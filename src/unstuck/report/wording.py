"""A Case in words: its program, its outcome, where a finding is, and the status line of a run without progress.

Needs no rich: the status is drawn often."""

from __future__ import annotations

import os

from unstuck.model import Case, Exit, Flight, Phase, Stall, Where
from unstuck.report.json_report import relative, training_flights
from unstuck.report.screen import Screen
from unstuck.text import count, seconds, signal_name

_STALLED: dict[Phase, str] = {
    "start": "no first step",
    "data": "no batch",
    "fetch": "no sample",
    "backward": "in backward",
    "optimizer": "in the optimizer step",
}


def sure(confidence: float) -> str:
    """How sure, in words and as a number; never 100 %: only a proof is that."""
    number = f"{min(99, round(confidence * 100))} % sure"
    if confidence >= 0.9:
        return number
    if confidence >= 0.7:
        return f"likely, {number}"
    return f"a suspicion, {number}"


def location(where: Where, cwd: str) -> str:
    """`train.py:41 in Shard.__getitem__`, or as much of it as is known."""
    spot = relative(where.file, cwd) or ""
    if spot and where.line is not None:
        spot = f"{spot}, line {where.line}" if spot.startswith("cell ") else f"{spot}:{where.line}"
    if where.function and where.function != "<module>":
        spot = f"{spot} in {where.function}" if spot else where.function
    return spot


def identity(where: Where) -> list[str]:
    """Who is there: rank, worker, process, sample, step."""
    parts = {
        "rank": where.rank,
        "worker": where.worker,
        "pid": where.pid,
        "sample": where.sample,
        "step": where.step,
    }
    return [f"{name} {value}" for name, value in parts.items() if value is not None]


def program(case: Case) -> str:
    """The short name of what runs: the script or module, without the interpreter and its options."""
    words = list(case.command)
    if words and os.path.basename(words[0]).startswith(("python", "pypy")):
        words = words[1:]
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-m", "-c") and words:
            return f"-m {words[0]}" if option == "-m" else "-c"
    return os.path.basename(words[0]) if words else ""


def again(case: Case, goal: str = "run") -> str:
    """The command that starts this training under `unstuck run`, or tunes or scans it; empty if that is not known."""
    import shlex

    words = list(case.command)
    if not words:
        return ""
    if not os.path.basename(words[0]).startswith(("python", "pypy")):
        return f"unstuck run -- {shlex.join(words)}"
    option = words[1:2]
    if not option or (option[0].startswith("-") and option[0] != "-m"):
        return ""
    return f"unstuck {goal} {shlex.join(words[1:])}"


def watched(case: Case) -> str:
    """What a run without a finding was watched for: that nothing was said is not to look like nothing was seen."""
    steps = progress(case)
    seen = f"watched {steps}" if steps else "saw no training step"
    off = ", ".join(probe for probe, _ in case.probes_off[:4])
    return f"{seen} in {seconds(case.seconds)}, nothing found" + (f" (off: {off})" if off else "")


def outcome(case: Case) -> str:
    """`stopped after 31 s`."""
    after = f" after {seconds(case.seconds)}" if case.seconds > 0 else ""
    if case.outcome == "running":
        return "running" + (f" for {seconds(case.seconds)}" if case.seconds > 0 else "")
    if case.outcome == "died":
        return f"{_death(case)}{after}"
    return f"{case.outcome}{after}"


def progress(case: Case) -> str:
    """`120 steps in 4 epochs`; empty where no step was seen."""
    training = training_flights(case)
    steps = max((flight.step for flight in training), default=0)
    epochs = max((flight.epoch for flight in training), default=0)
    if not steps:
        return ""
    return count(steps, "step") + (f" in {count(epochs, 'epoch')}" if epochs else "")


def _death(case: Case) -> str:
    end = next((end for end in case.exits if end.pid == case.root), Exit(0))
    if end.signal is not None:
        return f"killed by {signal_name(end.signal)}"
    return f"died with exit code {end.code}" if end.code is not None else "died"


def status_line(stall: Stall, case: Case, screen: Screen) -> str:
    """`unstuck: no batch for 12 s · waiting for worker 1 · sample 4711 · finding out why …`"""
    end = f"{stall.excuse}, not counted" if stall.excuse else "finding out why …"
    line = screen.clean(" · ".join([f"unstuck: {stalled_for(stall)}", *doing(stall, case), end]))
    ellipsis = screen.clean("…")
    # The last column stays free: a full line would wrap, and could not be wiped.
    return line if len(line) < screen.width else line[: max(0, screen.width - 1 - len(ellipsis))] + ellipsis


def stalled_for(stall: Stall) -> str:
    return f"{_STALLED.get(stall.phase, 'no step')} for {seconds(stall.standing)}"


def doing(stall: Stall, case: Case) -> list[str]:
    """What the stalled process is at, from the flight files alone."""
    flight = next((flight for flight in case.flights if flight.pid == stall.pid), None)
    if flight is None:
        return []
    words = [f"rank {flight.rank}"] if flight.rank is not None else []
    if stall.phase == "data" and not flight.fetching:
        # Batches come in order: main waits for the worker that has been at its own the longest.
        fetching = [f for f in case.flights if f.role == "worker" and f.fetching]
        worker = min(fetching, key=lambda f: f.moved or f.since, default=None)
        if worker is not None and worker.worker is not None:
            return [*words, f"waiting for worker {worker.worker}", *_sample(worker)]
    return [*words, *_sample(flight)]


def _sample(flight: Flight) -> list[str]:
    if flight.sample is not None:
        return [f"sample {flight.sample}"]
    return [f"sample {flight.sample_key}"] if flight.sample_key else []
