"""What happens to a dataset's own things: batches in its memory, files that workers share, changes they do not see."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from .base import Record, Site, record
from .loaders import LoaderState

Number = bool | int | float


@record
class AliasedBatch(LoaderState):
    """The training writes into batches that lie in the dataset's memory. `harm`, and what is said of the places, is of
    all of them; from `attribute` on it is about the one that was written to last."""

    looks: int = 0
    """Batches that were compared with what the dataset holds,"""
    shared: int = 0
    """and of these: lay in its memory."""
    changes: int = 0
    """Times that a part of one was written to before the next was asked for."""
    again: int = 0
    """Times that a later pass was given such a part as it had been left,"""
    rewritten: int = 0
    """and that it was changed once more."""
    harm: bool = False
    """Later passes see changed data: that is proven."""
    line: Site | None = None
    """The line during which the memory changed."""
    attribute: str = ""
    """Of the dataset, in which it lies."""
    sample: int | None = None
    address: int = 0
    bytes: int = 0
    version_before: int | None = None
    """torch's own count of writes; None where there is none."""
    version_after: int | None = None
    value_before: Number | None = None
    """The first number that changed."""
    value_after: Number | None = None


@record
class MovedHandle(Record):
    """An open file whose offset moved while this process did not touch it."""

    fd: int
    path: str = ""
    device: int = 0
    inode: int = 0
    times: int = 0
    seen: list[tuple[int, int]] = field(default_factory=list)
    """The last times: the offset as it was left, and as it was found."""
    worker: int | None = None
    """None: the main process, which waited for a batch meanwhile."""
    reads: int = 0
    """Calls of read in one batch of this worker, of any file."""
    attribute: str = ""
    """Of the dataset, that is or leads to this file; empty if none was found."""
    opened: Site | None = None
    """The line that gives that attribute its value."""
    guarded: bool = False
    """There is a lock that may guard it."""
    step: int = 0


@record
class ChangedAttribute:
    """A plain attribute of a dataset, or of what it holds."""

    name: str
    then: Any = None
    """As the workers were given it,"""
    now: Any = None
    """and as it is in the main process."""
    read: bool = False
    """The code that makes the samples names it."""


@record
class ChangedDataset(Record):
    """A dataset was changed in the main process since its persistent workers were started."""

    number: int = -1
    """Of the loader."""
    dataset: str = ""
    """Its class."""
    passes: int = 0
    """The pass that begins."""
    changed: list[ChangedAttribute] = field(default_factory=list)


@record
class WorkerDataset(Record):
    """The dataset as a worker has it at the beginning of a pass after its first."""

    passes: int = 0
    """Of this worker."""
    state: dict[str, Any] = field(default_factory=dict)
    """Plain attributes, by name: what the user keeps there."""
