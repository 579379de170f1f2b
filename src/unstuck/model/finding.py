"""What a rule says: a finding with its evidence, or the question that would decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]
SeenBy = Literal["flight", "py-spy", "faulthandler", "kernel", "exit"]
Setting = Literal[
    "workers",
    "persistent workers",
    "prefetching",
    "shuffling",
    "drop last",
    "accumulation",
    "clipping",
    "learning rate",
    "weight decay",
    "schedule",
    "epochs",
    "validation batches",
    "precision",
    "unused parameters",
]
"""What a fix may change that libraries have names of their own for."""


@dataclass(frozen=True, slots=True)
class Where:
    file: str | None = None
    line: int | None = None
    function: str | None = None
    pid: int | None = None
    worker: int | None = None
    rank: int | None = None
    sample: int | str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    text: str
    diff: str | None = None
    setting: Setting | None = None  # that it changes; `rules/library_words.py` adds how, in the library's own words
    value: str = ""  # that it should get


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    family: str
    severity: Severity
    confidence: float
    title: str
    evidence: tuple[str, ...]
    where: Where
    fix: Fix
    seen_by: SeenBy
    consequences: tuple[str, ...] = ()
    verified: str | None = None
    withdrawn: bool = False
    also: tuple[Where, ...] = ()  # further lines worth showing: where the holder is, the other end of the pipe


@dataclass(frozen=True, slots=True)
class Question:
    """A rule that cannot decide says what would."""

    rule: str
    asks: str
    would_decide: str
