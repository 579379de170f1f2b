"""Ranks in words: which of them, and in which call. Thousands of ranks fit into one line."""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Collective, Frame
from unstuck.text import spot

RUNS_SHOWN = 4  # of consecutive ranks
_KINDS = {
    "ddp_parameters": "the parameter check of DistributedDataParallel",
    "ddp_broadcast": "a broadcast of DistributedDataParallel",
    "ddp_gradients": "the gradient all_reduce of DistributedDataParallel",
}


def ranks(numbers: Iterable[int]) -> str:
    """rank 3; ranks 0–6 and 9; ranks 0–6, 9, 12, 15–20 and 40 more."""
    known = sorted(set(numbers))
    runs: list[list[int]] = []
    for number in known:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:RUNS_SHOWN]]
    rest = sum(map(len, runs[RUNS_SHOWN:]))
    if rest:
        words = f"{', '.join(shown)} and {rest:,} more"
    else:
        words = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    return f"rank {words}" if len(known) == 1 else f"ranks {words}"


def verb(numbers: Iterable[int], one: str, many: str) -> str:
    return one if len(set(numbers)) == 1 else many


def kind(call: Collective) -> str:
    """all_reduce; what DistributedDataParallel starts, in words."""
    return _KINDS.get(call.kind, call.kind)


def shape(call: Collective) -> str:
    """float32 [64, 32]; empty where it is not known."""
    if call.dimensions is None:
        return ""
    more = ", …" if call.dimensions > len(call.shape) else ""
    return f"{call.dtype or 'a tensor of'} [{', '.join(map(str, call.shape))}{more}]"


def named_call(call: Collective, frame: Frame | None = None) -> str:
    """all_reduce #412 at train.py:88"""
    if call.kind in ("send", "recv"):
        number = "" if call.peer is None else f" {'to' if call.kind == 'send' else 'from'} rank {call.peer}"
    else:
        number = f" #{call.number:,}" if call.number else ""
    if frame is not None:
        return f"{kind(call)}{number} at {spot(frame.file, frame.line)}"
    return f"{kind(call)}{number}" + (f" at {spot(call.file, call.line)}" if call.file else "")
