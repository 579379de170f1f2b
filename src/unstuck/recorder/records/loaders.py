"""Loaders: their settings, how passes over them went, how long batches took; datasets that processes share."""

from __future__ import annotations

from typing import Any

from . import Record, Site, Struct

Number = bool | int | float


class LoaderSettings(Record):
    """A DataLoader as it was at its first pass."""

    number: int = -1  # its own for good; one made anew at the same line, after the old one is gone, has the same
    loader: int = 0  # its address in memory, which another one may get later
    site: Site | None = None  # where the first pass began
    length: int | None = None  # batches of a pass, as it says itself
    iterable: bool = False
    batch_size: int | None = None
    num_workers: int = 0
    drop_last: bool = False
    pin_memory: bool = False
    prefetch_factor: int | None = None
    timeout: float = 0.0
    persistent_workers: bool = False
    in_order: bool = True
    dataset: str = ""  # name of its class, as of the sampler's
    sampler: str = ""
    start_method: str = ""  # of its own multiprocessing context; empty where it has none
    samples: int | None = None  # of the dataset, where that can be read
    sampler_site: Site | None = None
    dataset_site: Site | None = None
    asks_worker: bool = False  # `splits`, or there is a worker_init_fn
    splits: bool = False  # the code of the dataset, or of the worker_init_fn, reads which worker it is in


class Healed(Record):
    """A healing loader of ours did something about a fault."""

    act: str = ""  # "quarantined", "replaced worker" or "gave up"
    what: str = ""  # in a sentence
    sample: int | str | None = None
    worker: int | None = None
    reason: str = ""


class WorkersStarted(Record):
    """New workers of a loader."""

    number: int = -1  # of the loader
    loader: int = 0  # its address
    pids: list[int] = []
    changed: list[str] = []  # attributes of the dataset that changed since workers were last started
    replaced: bool = False  # it is another dataset than at that time
    pickled: int = 0  # bytes of the largest pickle that one of them was started with; 0: forked
    pickling: float = 0.0  # seconds that making their pickles took


class ProcessStarting(Record):
    """Another interpreter is being started (spawn, forkserver); by the one that starts it."""

    site: Site | None = None
    step: int = 0


class ProcessReady(Record):
    """Its own word, when it has all that it was handed and its task begins."""

    parent: int = 0
    began: float = 0.0


class FirstSent(Record):
    """What a forked process of the script's own sent first, as prints of its tensors and arrays."""

    parent: int = 0
    site: Site | None = None  # the function it runs
    prints: list[int] = []
    drawn: list[str] = []  # generators of random numbers that were drawn from meanwhile, as a person writes them


class LoaderState(Record):
    """What every record about a loader says of it."""

    number: int = -1
    length: int | None = None  # batches of a pass, as the loader says itself
    iterable: bool = False
    workers: int = 0
    loaders: int = 0  # so many DataLoader objects were this one, one after another
    passes: int = 0  # begun so far
    site: Site | None = None  # where the present pass began
    library: bool = False  # that is in a library's code
    step: int = 0  # training steps of the process,
    trained: int = 0  # and those made in the present pass


class PassEnded(LoaderState):
    """A pass came to its own end, with batches."""

    batches: int = 0


class EmptyPass(LoaderState):
    """A pass ended before its first batch."""

    empty: int = 0  # in a row
    full_passes: int = 0  # ended with batches
    trains: bool = False  # the same lines made steps with another loader


class AskedAfterEnd(LoaderState):
    """The iterator of a pass that has ended was called for more, again and again."""

    again: int = 0


class ShortPasses(LoaderState):
    """Passes were left after one step at most."""

    short: int = 0  # in a row
    opening: float = 0.0  # seconds that making all iterators took,
    since_first: float = 0.0  # of so many since the loader's first pass


class OverLength(LoaderState):
    """A pass has given more batches than the loader's length says."""

    batches: int = 0
    seconds: float = 0.0


class SameBatch(LoaderState):
    """Batches that were compared, each with the one compared before it, had the same contents."""

    same: int = 0  # in a row, after the first
    apart: int = 1  # the most batches from one of them to the next; 1: they followed each other directly
    batches: int = 0  # of the present pass
    short: int = 0  # passes in a row that were left after one step at most


class Repeats(LoaderState):
    """Samples came more than once in a pass."""

    looks: int = 0  # batches looked at,
    rows: int = 0  # and samples
    own: int = 0  # of these: came before, from the same worker,
    other: int = 0  # and from another
    batches: int = 0
    seconds: float = 0.0
    endless: bool = True  # the code of the stream shows no end


class DataWait(LoaderState):
    """How long the training waited for batches, where that is a good part of its time."""

    drawn: int = 0  # batches, but for the first of each pass
    waited: float = 0.0  # seconds for all of these,
    longest: float = 0.0  # and for the slowest one
    seconds: float = 0.0  # from the first batch of all to the last
    first_wait: float = 0.0  # for the first batch of all
    starts: int = 0  # passes after the first
    starting: float = 0.0  # seconds from the beginning of each of them to its first batch
    opening: float = 0.0  # seconds that making all iterators took,
    since_first: float = 0.0  # of so many since the loader's first pass
    pickled: int = 0  # bytes of the largest pickle that a worker was started with,
    pickling: float = 0.0  # and seconds for all of them
    trains: bool = False


class GpuCopies(LoaderState):
    """What copying a batch to the GPU takes, in seconds."""

    bytes: int = 0  # of a batch
    ordinary: float = 0.0  # out of pageable memory,
    pinned: float = 0.0  # out of pinned memory,
    pinning: float = 0.0  # and from the one to the other
    period: float = 0.0  # from batch to batch
    waits: float = 0.0  # share of the time in which the training waited for batches
    moved: bool = False  # a layer on the GPU gets data of that size which no layer made
    trains: bool = False


class AliasedBatch(LoaderState):
    """The training writes into batches that lie in the dataset's memory. `harm` and the counts are about all of them;
    from `attribute` on it is about the one that was written to last."""

    looks: int = 0  # batches compared with what the dataset holds
    shared: int = 0  # of these: in its memory
    changes: int = 0  # times that a part of one was modified before the next batch was drawn
    again: int = 0  # times that a later pass got such a part as it had been left,
    rewritten: int = 0  # and that it was modified once more
    harm: bool = False  # proven: later passes see changed data
    line: Site | None = None  # during which the memory changed
    attribute: str = ""  # of the dataset, in which it lies
    sample: int | None = None
    address: int = 0
    bytes: int = 0
    version_before: int | None = None  # torch's own count of writes; None where there is none
    version_after: int | None = None
    value_before: Number | None = None  # the first number that changed
    value_after: Number | None = None


class RewrittenData(Record):
    """Batches that are views of one tensor, without a loader, and that come to the weights changed each time."""

    shape: list[int] = []  # of that tensor
    looks: int = 0  # batches looked at,
    places: int = 0  # at so many places in it
    again: int = 0  # times that a place came again with its data changed,
    same: int = 0  # or as it had been
    copied: bool = False  # the batches are no views: their rows are copies of what lies there
    kept: int = 0  # times that a line wrote into it and left the batch just used as it was
    line: Site | None = None  # during which the tensor changed
    value_before: Number | None = None  # of one place, the number that changed most between two uses
    value_after: Number | None = None
    step: int = 0


class KeptInOnePlace(Record):
    """Batches that wait, or states that are kept to learn from, lie in one memory that changes meanwhile."""

    name: str = ""  # of the list or queue, as it is reached
    looks: int = 0
    changes: int = 0  # at so many of these something kept had changed
    line: Site | None = None  # during which it changed; or where another thread was that has a name for it:
    called: str = ""  # that name
    value_before: Number | None = None  # the first number that changed
    value_after: Number | None = None
    step: int = 0


class RepeatedPickles(Record):
    """Other processes are sent the same array again in each message."""

    name: str = ""  # of the array: the class that a bound method belongs to, and the attribute; empty if unknown
    size: int = 0  # its bytes
    line: Site | None = None  # where the main thread was
    messages: int = 0  # large ones, of whatever contents,
    bytes: int = 0  # and in all of them
    sending: float = 0.0  # seconds that pickling and writing them took here at least,
    seconds: float = 0.0  # in so many since the first


class MovedHandle(Record):
    """An open file whose offset moved while this process did not touch it."""

    fd: int
    path: str = ""
    device: int = 0
    inode: int = 0
    times: int = 0
    seen: list[tuple[int, int]] = []  # the last times: the offset as it was left, and as it was when next used
    worker: int | None = None  # None: the main process, which waited for a batch meanwhile
    reads: int = 0  # calls of read in one batch of this worker, of any file
    attribute: str = ""  # of the dataset, that is or leads to this file; empty if unknown
    opened: Site | None = None  # the line that gives that attribute its value
    guarded: bool = False  # there is a lock that may guard it
    step: int = 0


class ChangedAttribute(Struct):
    """A plain attribute of a dataset, or of what it holds."""

    name: str
    then: Any = None  # as the workers got it
    now: Any = None  # as it is in the main process
    read: bool = False  # the code that makes the samples names it


class ChangedDataset(Record):
    """A dataset was changed in the main process after its persistent workers were started."""

    number: int = -1  # of the loader
    dataset: str = ""  # its class
    passes: int = 0  # the pass that begins
    changed: list[ChangedAttribute] = []


class WorkerDataset(Record):
    """The dataset as a worker has it at the beginning of a pass after its first."""

    passes: int = 0  # of this worker
    state: dict[str, Any] = {}  # plain attributes by name
