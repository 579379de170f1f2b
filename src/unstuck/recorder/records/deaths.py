"""How things end: exceptions of samples, batches, threads and processes, and what was measured at that moment."""

from __future__ import annotations

from typing import Literal

from . import Record, Site, Struct
from .numerics import DrawnBatch

TracedLine = tuple[str, int, str, bool]  # file, line and function of a frame, and whether it is the user's own code


class Raised(Struct):
    """One exception."""

    type: str
    message: str = ""
    frames: list[TracedLine] = []  # innermost first
    errno: int | None = None
    files: list[str] = []  # that an OSError names
    notes: list[str] = []
    how: Literal["", "cause", "context", "hidden"] = ""  # in a chain: `from` it; while handling it; `from None`
    chain: list[Raised] = []  # what it came from, the latest first


class Descriptors(Struct):
    """How many a process had open."""

    open: int = 0
    limit: int = 0
    kinds: dict[str, int] = {}  # pipes, sockets, folders of files …, the most first; counted where there are many
    pid: int | None = None  # a worker of the process that counted; None: the process itself


class FileSystem(Struct):
    path: str = ""  # of what was being written there
    mount: str = ""
    kind: str = ""
    size: int = 0
    free: int = 0
    full: bool = False
    no_inodes: bool = False


class SharedMemory(FileSystem):
    users: list[tuple[int, int]] = []  # processes, and the bytes of it that each has mapped


class Measured(Struct):
    """Measured when something failed: a second later it may be gone."""

    descriptors: Descriptors | None = None
    crowded: list[Descriptors] = []  # workers that have hardly any left
    shared_memory: SharedMemory | None = None
    sharing: str = ""  # torch's strategy for tensors that processes share
    file_systems: list[FileSystem] = []  # that were full, or written to at that moment


class SampleInWork(Struct):
    """What a process was fetching."""

    worker: int | None = None
    sample: int | None = None
    key: str = ""  # the index as text where it is no integer
    collating: bool = False
    opened: str = ""  # the file it opened last


class WorkerExit(Struct):
    worker: int
    pid: int
    exitcode: int | None = None  # None: it lives


class Failed(Record):
    raised: Raised
    step: int = 0  # training steps of the process
    measured: Measured = Measured()


class SampleFailed(Failed):
    """An exception came out of a fetch, in a worker or in main."""

    in_work: SampleInWork = SampleInWork()
    position: int | None = None  # of the sample in its batch
    starting: bool = False  # it came out of the start of a worker


class BatchFailed(Failed):
    """A batch could not be had."""

    worker: int | None = None  # that handed over its exception
    workers: list[WorkerExit] = []


class Labels(Struct):
    """What a loss function got as class labels."""

    shape: list[int] = []
    scores: list[int] = []  # shape of the scores
    device: str = ""
    classes: int | None = None  # None: they could not be read, and all below is unknown
    ignored: int | None = None
    wrong: int = 0  # so many are no class
    least: int | None = None
    most: int | None = None
    label: int | None = None  # the first wrong one,
    place: int | None = None  # and its sample's index in the batch


class Unpicklable(Struct):
    """What a new process was to get and cannot be pickled."""

    path: str = ""
    what: str = ""  # in words
    kind: Literal["function", "class", "object"] = "object"
    site: Site | None = None


class Owners(Struct):
    """Bytes on the device by what they are."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    others: int = 0


class TensorsAlike(Struct):
    """Tensors of one shape that belong neither to the model nor to the optimizer."""

    shape: list[int] = []
    dtype: str = ""
    graph: bool = False
    count: int = 0
    bytes: int = 0


class DeviceState(Struct):
    """Memory of a GPU when its allocator had no more to give."""

    device: int = 0
    name: str = ""
    total: int = 0
    allocated: int = 0
    reserved: int = 0
    free: int | None = None  # None: the device did not say
    curve: list[tuple[int, int]] = []  # step, and bytes handed out before its backward pass
    owners: Owners | None = None
    shapes: list[TensorsAlike] = []  # the largest
    all_seen: bool = True  # False: there was more to look through than time for it


class Died(Failed):
    """The exception that ended a process."""

    workers: list[WorkerExit] = []
    in_work: SampleInWork = SampleInWork()
    batches: list[DrawnBatch] = []
    labels: Labels | None = None
    batch_norm: list[int] | None = None  # shape that batch normalisation refused
    pickling: Unpicklable | None = None
    device: DeviceState | None = None


class TaskFailed(Died):
    """The exception that ended a task of a pool; the process lives, and hands it to the one that asked for the task."""


class ThreadDied(Record):
    """The exception that ended a thread."""

    raised: Raised
    thread: str = ""


class LeftByExit(Record):
    """A process called os._exit."""

    code: int = 0
    frames: list[TracedLine] = []  # innermost first
    step: int = 0
    in_work: SampleInWork = SampleInWork()


class ChildEnded(Record):
    """A child that multiprocessing started was reaped, and had failed."""

    child: int
    code: int
