"""What came of a scan: a whole dataset, gone through once."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Record, Site, record
from .data import LoaderData


@record
class BadSample:
    sample: int | None = None
    """Its index; of a dataset whose keys are no numbers, when it was drawn. None: not known."""
    key: str = ""
    """Such a key, as text."""


@record
class FailedSample(BadSample):
    message: str = ""


@record
class SampleErrors:
    """Samples that raise the same error at the same line."""

    type: str
    site: Site | None = None
    """The innermost line of the user's."""
    count: int = 0
    first: list[FailedSample] = field(default_factory=list)


@record
class HungSample(BadSample):
    seconds: float = 0.0
    spins: bool = False
    """It burns processor time."""
    site: Site | None = None
    """The innermost line of the user's, where it stood."""


@record
class KillingSample(BadSample):
    """The worker died of it."""

    exitcode: int | None = None


@record
class Scanned(Record):
    """One scan."""

    data: LoaderData
    done: int = 0
    """Gone through, whatever came of it,"""
    of: int | None = None
    """of so many, where that is known."""
    what: Literal["samples", "batches"] = "samples"
    stream: bool = False
    """It is iterated, not indexed."""
    limited: bool = False
    workers: int = 0
    """0: it was read in the very process of the script."""
    why: str = ""
    """Why one process read it."""
    seconds: float = 0.0
    interrupted: bool = False
    gave_up: bool = False
    """Too many samples hang or kill their worker."""
    failed: int = 0
    errors: list[SampleErrors] = field(default_factory=list)
    hung: list[HungSample] = field(default_factory=list)
    died: list[KillingSample] = field(default_factory=list)
    median: float = 0.0
    """Seconds of a sample."""
    slow: list[tuple[float, int]] = field(default_factory=list)
    """Seconds and sample."""
    duplicates: list[list[int]] = field(default_factory=list)
    """Samples with the very same content, in groups,"""
    duplicated: int = 0
    """and how many are too many, in all."""
    unprinted: int = 0
    """Not compared: they have parts that are not known."""
    odd: dict[str, int] = field(default_factory=dict)
    """Samples that could not be read for statistics, by the error."""
