"""Numbers, places and outcomes in words, the same in every place that shows them."""

from __future__ import annotations

import os
import signal

from unstuck import text
from unstuck.model import Case, Exit, Where
from unstuck.report.json_report import relative, training_flights

_ASCII = str.maketrans(
    {
        "·": "-",
        "…": "...",
        "–": "-",
        "—": "-",
        "×": "x",
        "→": "->",
        "←": "<-",
        "≥": ">=",
        "≤": "<=",
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "µ": "u",
        "•": "*",
        "\u00a0": " ",
        "\u202f": " ",
    }
)


def clean(text: str, unicode: bool = True) -> str:
    """Text that cannot disturb a terminal: names and source lines may hold escape codes and line ends."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text.expandtabs(4).replace("\n", " "))
    return text if unicode else text.translate(_ASCII).encode("ascii", "replace").decode()


duration = text.seconds


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def sure(confidence: float) -> str:
    """How sure, in words and as a number; never 100 %, for that only a proof is."""
    number = f"{min(99, round(confidence * 100))} % sure"
    if confidence >= 0.9:
        return number
    if confidence >= 0.7:
        return f"likely, {number}"
    return f"a suspicion, {number}"


def place(where: Where, cwd: str) -> str:
    """`train.py:41 in Shard.__getitem__`, or as much of it as is known."""
    spot = relative(where.file, cwd) or ""
    if spot and where.line is not None:
        spot = f"{spot}:{where.line}"
    if where.function and where.function != "<module>":
        spot = f"{spot} in {where.function}" if spot else where.function
    return spot


def party(where: Where) -> list[str]:
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


def outcome(case: Case) -> str:
    """`stopped after 31 s`."""
    after = f" after {duration(case.seconds)}" if case.seconds > 0 else ""
    if case.outcome == "running":
        return "running" + (f" for {duration(case.seconds)}" if case.seconds > 0 else "")
    if case.outcome == "died":
        return f"died{_how(case)}{after}"
    return f"{case.outcome}{after}"


def progress(case: Case) -> str:
    """`120 steps in 4 epochs`; empty where no step was seen."""
    training = training_flights(case)
    steps = max((flight.step for flight in training), default=0)
    epochs = max((flight.epoch for flight in training), default=0)
    if not steps:
        return ""
    return count(steps, "step") + (f" in {count(epochs, 'epoch')}" if epochs else "")


def _how(case: Case) -> str:
    end = next((end for end in case.exits if end.pid == case.root), Exit(0))
    if end.signal is not None:
        try:
            return f" of {signal.Signals(end.signal).name}"
        except ValueError:
            return f" of signal {end.signal}"
    return f" with exit code {end.code}" if end.code is not None else ""
