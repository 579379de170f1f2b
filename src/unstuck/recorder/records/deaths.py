"""How things end: exceptions of samples, batches, threads and processes, and what was measured at that moment."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Record, Site, record
from .numerics import DrawnBatch

TracedLine = tuple[str, int, str, bool]
"""File, line and function of a frame, and whether it is the user's own code."""


@record
class Raised:
    """One exception."""

    type: str
    message: str = ""
    frames: list[TracedLine] = field(default_factory=list)
    """Innermost first."""
    errno: int | None = None
    files: list[str] = field(default_factory=list)
    """That an OSError names."""
    notes: list[str] = field(default_factory=list)
    how: Literal["", "cause", "context", "hidden"] = ""
    """In a chain: raised from it; raised while it was handled; the same, but hidden by `from None`."""
    chain: list[Raised] = field(default_factory=list)
    """What it came from, the latest first."""


@record
class Descriptors:
    """How many a process had open."""

    open: int = 0
    limit: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    """Pipes, sockets, folders of files …, the most first; counted where there are many."""
    pid: int | None = None
    """A worker of the process that counted; None: the process itself."""


@record
class FileSystem:
    path: str = ""
    """What was to be written there."""
    mount: str = ""
    kind: str = ""
    size: int = 0
    free: int = 0
    full: bool = False
    no_inodes: bool = False


@record
class SharedMemory(FileSystem):
    users: list[tuple[int, int]] = field(default_factory=list)
    """Processes, and the bytes of it that each has mapped."""


@record
class Measured:
    """Measured when something failed: a second later it may be gone."""

    descriptors: Descriptors | None = None
    crowded: list[Descriptors] = field(default_factory=list)
    """Workers that have hardly any left."""
    shared_memory: SharedMemory | None = None
    sharing: str = ""
    """torch's strategy for tensors that processes share."""
    file_systems: list[FileSystem] = field(default_factory=list)
    """Where there was no room, or something was being saved."""


@record
class SampleInWork:
    """What a process was fetching."""

    worker: int | None = None
    sample: int | None = None
    key: str = ""
    """The index as text where it is no integer."""
    collating: bool = False
    opened: str = ""
    """The file it opened last."""


@record
class WorkerExit:
    worker: int
    pid: int
    exitcode: int | None = None
    """None: it lives."""


@record
class Failed(Record):
    raised: Raised
    step: int = 0
    """Training steps made by the process."""
    measured: Measured = field(default_factory=Measured)


@record
class SampleFailed(Failed):
    """An exception came out of a fetch, in a worker or in main."""

    in_work: SampleInWork = field(default_factory=SampleInWork)
    position: int | None = None
    """Of the sample in its batch."""
    starting: bool = False
    """It came out of the start of a worker."""


@record
class BatchFailed(Failed):
    """A batch could not be had."""

    worker: int | None = None
    """That handed over its exception."""
    workers: list[WorkerExit] = field(default_factory=list)


@record
class Labels:
    """What a loss function was given as class labels."""

    shape: list[int] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)
    """Shape of the scores."""
    device: str = ""
    classes: int | None = None
    """None: they could not be looked at, and all below is not known."""
    ignored: int | None = None
    wrong: int = 0
    """So many are no class."""
    least: int | None = None
    most: int | None = None
    label: int | None = None
    """The first wrong one,"""
    place: int | None = None
    """and the place of its sample in the batch."""


@record
class Unpicklable:
    """What a new process was to be given and cannot be pickled."""

    path: str = ""
    what: str = ""
    """In words."""
    kind: Literal["function", "class", "object"] = "object"
    site: Site | None = None


@record
class Owners:
    """Bytes on the device by what they are."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    others: int = 0


@record
class TensorsAlike:
    """Tensors that are none of the model's or the optimizer's, of one shape."""

    shape: list[int] = field(default_factory=list)
    dtype: str = ""
    graph: bool = False
    count: int = 0
    bytes: int = 0


@record
class DeviceState:
    """Memory of a GPU when its allocator had no more to give."""

    device: int = 0
    name: str = ""
    total: int = 0
    allocated: int = 0
    reserved: int = 0
    free: int | None = None
    """None: the device did not say."""
    curve: list[tuple[int, int]] = field(default_factory=list)
    """Step, and bytes handed out before its backward pass."""
    owners: Owners | None = None
    shapes: list[TensorsAlike] = field(default_factory=list)
    """The largest."""
    all_seen: bool = True
    """False: there was more to look through than time for it."""


@record
class Died(Failed):
    """The exception that a process ended of."""

    workers: list[WorkerExit] = field(default_factory=list)
    in_work: SampleInWork = field(default_factory=SampleInWork)
    batches: list[DrawnBatch] = field(default_factory=list)
    labels: Labels | None = None
    batch_norm: list[int] | None = None
    """Shape that batch normalisation refused."""
    pickling: Unpicklable | None = None
    device: DeviceState | None = None


@record
class ThreadDied(Record):
    """The exception that a thread ended of."""

    raised: Raised
    thread: str = ""


@record
class LeftByExit(Record):
    """A process called os._exit."""

    code: int = 0
    frames: list[TracedLine] = field(default_factory=list)
    """Innermost first."""
    step: int = 0
    in_work: SampleInWork = field(default_factory=SampleInWork)


@record
class ChildEnded(Record):
    """A child that multiprocessing started was reaped, and had failed."""

    child: int
    code: int
