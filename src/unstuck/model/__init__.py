"""The Case and everything in it: plain frozen data, the same in memory, on disk and in a rule.

    record, observe ──▶ Case ──▶ rules ──▶ Finding | Question ──▶ report

Times are seconds. Moments (`at`, `since`, `began`) are on the machine's monotonic clock, so that a flight
file, a look and the supervisor agree; `Case.clock_offset` turns one into wall-clock time.
"""
# ruff: noqa: I001  # many names, written in rows

from __future__ import annotations

from .case import (
    CASE_SCHEMA, Case, Exit, Fetcher, HotLine, MemoryCurve, MemoryGroup, MemoryPoint, Outcome, PageCopy, PathFact,
    SeenStack, Sender, Stall, StepTrend, Strain, Times, Turns,
)  # fmt: skip
from .finding import Finding, Fix, Question, SeenBy, Setting, Severity, Where
from .process import (
    Collective, Crash, Fetch, FileLock, Flight, Frame, LastPass, Look, Pace, Phase, Process, RankGroup, Role, Step,
    Thread, Wait, WaitKind,
)  # fmt: skip

SCHEMA = 1  # of the JSON report

__all__ = [
    "CASE_SCHEMA", "SCHEMA", "Case", "Collective", "Crash", "Exit", "Fetch", "Fetcher", "FileLock", "Finding", "Fix",
    "Flight", "Frame", "HotLine", "LastPass", "Look", "MemoryCurve", "MemoryGroup", "MemoryPoint", "Outcome", "Pace",
    "PageCopy", "PathFact", "Phase", "Process", "Question", "RankGroup", "Role", "SeenBy", "SeenStack", "Sender",
    "Setting", "Severity", "Stall", "Step", "StepTrend", "Strain", "Thread", "Times", "Turns", "Wait", "WaitKind",
    "Where",
]  # fmt: skip
