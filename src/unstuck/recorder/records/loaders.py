"""Loaders: how they are set, how passes over them went, how long their batches were waited for."""

from __future__ import annotations

from dataclasses import field

from .base import Record, Site, record


@record
class LoaderSettings(Record):
    """A DataLoader as it was when it was first gone through."""

    number: int = -1
    """Its own for good. One made anew at the same line, after the one before it is gone, has the same."""
    loader: int = 0
    """Its place in memory, which another one may take later."""
    site: Site | None = None
    """Where the first pass was begun."""
    length: int | None = None
    """Batches of a pass, as it says itself."""
    iterable: bool = False
    batch_size: int | None = None
    num_workers: int = 0
    drop_last: bool = False
    pin_memory: bool = False
    prefetch_factor: int | None = None
    timeout: float = 0.0
    persistent_workers: bool = False
    in_order: bool = True
    dataset: str = ""
    """Names of classes."""
    sampler: str = ""
    start_method: str = ""
    """Of its own multiprocessing context; empty where it has none."""
    samples: int | None = None
    """Of the dataset, where it could be asked."""
    sampler_site: Site | None = None
    dataset_site: Site | None = None
    asks_worker: bool = False
    """The dataset's code asks which worker it is in, or there is a function that prepares each worker."""
    splits: bool = False
    """The dataset's code, or that function, asks which worker it is in."""


@record
class WorkersStarted(Record):
    """Workers of a loader that were not there before."""

    number: int = -1
    """Of the loader,"""
    loader: int = 0
    """and its place in memory."""
    pids: list[int] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Attributes of the dataset that were others when workers were last started."""
    replaced: bool = False
    """It is another dataset than that."""
    pickled: int = 0
    """Bytes of the largest pickle that one of them was started with; 0: forked."""
    pickling: float = 0.0
    """Seconds that making their pickles took."""


@record
class LoaderState(Record):
    """What is said of a loader whenever something is said of it."""

    number: int = -1
    length: int | None = None
    """Batches of a pass, as the loader says itself."""
    iterable: bool = False
    workers: int = 0
    loaders: int = 0
    """So many loaders were this one, one after another."""
    passes: int = 0
    """Begun so far."""
    site: Site | None = None
    """Where the present pass was begun."""
    step: int = 0
    """Training steps made by the process."""


@record
class PassEnded(LoaderState):
    """A pass came to its own end, with batches."""

    batches: int = 0


@record
class EmptyPass(LoaderState):
    """A pass ended before its first batch."""

    empty: int = 0
    """In a row;"""
    full_passes: int = 0
    """those that came to their end with batches."""
    trains: bool = False
    """The same lines made steps with another loader."""


@record
class AskedAfterEnd(LoaderState):
    """The iterator of a pass that has ended was asked for more, again and again."""

    again: int = 0


@record
class ShortPasses(LoaderState):
    """Passes were left early, after one step at most."""

    short: int = 0
    """In a row."""
    opening: float = 0.0
    """Seconds that making all iterators took,"""
    since_first: float = 0.0
    """of so many since the loader was first gone through."""


@record
class OverLength(LoaderState):
    """A pass has given more batches than the loader says a pass has."""

    batches: int = 0
    seconds: float = 0.0


@record
class SameBatch(LoaderState):
    """Batches that were compared, each with the one compared before it, had the same contents."""

    same: int = 0
    """In a row, after the first."""
    apart: int = 1
    """The most batches from one of them to the next; 1: they followed each other directly."""
    batches: int = 0
    """Of the present pass."""
    short: int = 0
    """Passes in a row that were left after one step at most."""


@record
class Repeats(LoaderState):
    """Samples came more than once in a pass."""

    rows: int = 0
    """Samples looked at."""
    own: int = 0
    """Of these: had come before, from the same worker,"""
    other: int = 0
    """and from another."""
    batches: int = 0
    seconds: float = 0.0
    endless: bool = True
    """The code of the stream shows no end."""


@record
class DataWait(LoaderState):
    """How long batches were waited for, where it is a good part of the time of a training."""

    drawn: int = 0
    """Batches, but for the first of each pass,"""
    waited: float = 0.0
    """seconds for all of these,"""
    longest: float = 0.0
    """and for the one that took longest,"""
    seconds: float = 0.0
    """from the first batch of all to the last."""
    first_wait: float = 0.0
    """For the first batch of all."""
    starts: int = 0
    """Passes after the first,"""
    starting: float = 0.0
    """and the seconds from asking for each to its first batch."""
    opening: float = 0.0
    """Seconds that making all iterators took,"""
    since_first: float = 0.0
    """of so many since the loader was first gone through."""
    pickled: int = 0
    """Bytes of the largest pickle that a worker was started with,"""
    pickling: float = 0.0
    """and seconds for all of them."""
    trains: bool = False


@record
class GpuCopies(LoaderState):
    """What copying a batch to the GPU takes, in seconds."""

    bytes: int = 0
    """Of a batch."""
    ordinary: float = 0.0
    """Out of its own memory,"""
    pinned: float = 0.0
    """out of pinned memory,"""
    pinning: float = 0.0
    """and from the one to the other."""
    period: float = 0.0
    """From batch to batch."""
    waits: float = 0.0
    """Share of the time that was waited for batches."""
    moved: bool = False
    """A layer on the GPU is given data of that size which no layer made."""
    trains: bool = False
