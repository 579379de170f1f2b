"""The Case: everything known about one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from unstuck.recorder.records.data import DataSeen, LostRows, Scanned
from unstuck.recorder.records.deaths import (
    BatchFailed,
    ChildEnded,
    Died,
    LeftByExit,
    SampleFailed,
    TaskFailed,
    ThreadDied,
)
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.loaders import (
    AliasedBatch,
    AskedAfterEnd,
    ChangedDataset,
    DataWait,
    EmptyPass,
    FirstSent,
    GpuCopies,
    Healed,
    KeptInOnePlace,
    LoaderSettings,
    MovedHandle,
    OverLength,
    PassEnded,
    ProcessReady,
    ProcessStarting,
    RepeatedPickles,
    Repeats,
    RewrittenData,
    SameBatch,
    ShortPasses,
    WorkerDataset,
    WorkersStarted,
)
from unstuck.recorder.records.loops import (
    EventFile,
    Feeding,
    GrowthSnapshot,
    LibraryLoop,
    LoopSnapshot,
    LossGraph,
    NotebookCell,
    SameGiven,
)
from unstuck.recorder.records.ranks import ReductionUnfinished, WorldJoined

from .process import Flight, Look, Pace, Phase, Step

CASE_SCHEMA = 2  # of a saved Case: 2 has typed records in the place of facts

STILL_SHARE = 0.6  # of a standstill: what shows progress is looked at every few seconds

Outcome = Literal["running", "finished", "stopped", "died", "interrupted"]


@dataclass(frozen=True, slots=True)
class Times:
    """When a standstill counts, in seconds; `--stall-after` replaces them all."""

    suspect: float = 10.0
    proven: float = 5.0  # a proven deadlock is named after this
    busy: float = 10.0
    busy_ratio: float = 1000.0
    silent: float = 300.0
    silent_ratio: float = 20.0


@dataclass(frozen=True, slots=True)
class Stall:
    """The clock of one training process stopped."""

    pid: int
    phase: Phase
    since: float
    standing: float  # seconds without a seam passed, less the time that does not count
    pace: Pace = field(default_factory=Pace)  # the run's own pace for this kind of phase
    seams: bool = True  # any seam ever fired in this process; where none did the clock alone gives no verdict
    excuse: str = ""  # why it does not count now: compiling, saving, at a debugger, stopped; empty if it counts
    still: float = 0.0  # seconds for which stacks, I/O bytes, memory and child CPU all showed no progress
    suspect: bool = False  # longer than this run's own pace allows; at Ctrl-C such a standstill is reported
    at_least: bool = False  # `standing` is only what could be seen of it: it may have stood much longer

    def lasts(self, limit: float) -> bool:
        """It has stood for so long, and for most of that time there was no progress of any kind."""
        return self.standing >= limit and self.still >= STILL_SHARE * limit


@dataclass(frozen=True, slots=True)
class Exit:
    pid: int
    code: int | None = None
    signal: int | None = None
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    at: float
    rss: int
    step: int = 0  # training steps of the process by then


@dataclass(frozen=True, slots=True)
class MemoryCurve:
    """Memory of one process over its life, thinned out as it grows longer."""

    pid: int
    points: tuple[MemoryPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A memory cgroup around processes of the run: their own, and the one with the narrowest limit above it."""

    path: str
    version: int  # 1 or 2; 0: not a cgroup but the whole machine
    limit: int | None = None  # None: no limit of its own
    usage: int = 0
    peak: int = 0
    kills_before: int = 0  # its counter of OOM kills when the run began; -1: it could not be read
    kills: int = 0  # the counter as last read
    pids: tuple[int, ...] = ()  # processes of the run in it, as far as known


@dataclass(frozen=True, slots=True)
class HotLine:
    """The line of the user's code in which most of the time that batches take is spent."""

    file: str
    line: int
    function: str
    code: str = ""
    share: float = 0.0  # of the samples taken while a batch was being made
    samples: int = 0  # all of these
    waiting: str = ""  # what the processes mostly wait for while they make batches (a WaitKind); empty: they compute
    takes: str = ""  # the lock that the line takes, as written


@dataclass(frozen=True, slots=True)
class SeenStack:
    """A stack of a training without a loader, or of what it started, as often as it was seen."""

    pid: int
    trains: bool = False  # it is of the thread that trains
    frames: tuple[tuple[str, int, str], ...] = ()  # file, line and function of those of the user's, innermost first
    code: str = ""  # of the first of them
    waits: bool = False  # it is in a wait for another thread or process
    model: bool = False  # a module of torch is on it
    count: int = 0


@dataclass(frozen=True, slots=True)
class Fetcher:
    """A process that makes batches, over the seconds in which it was watched."""

    pid: int
    worker: int | None = None
    busy: float = 0.0  # share of the looks in which it was making a batch,
    blocked: float = 0.0  # and in which it waited for a lock meanwhile
    cpu: float = 0.0  # processors it kept busy, on average
    delayed: float = 0.0  # seconds a second, over all its threads, in which it was ready and had no processor
    threads: int = 1  # threads of it that ran


@dataclass(frozen=True, slots=True)
class Turns:
    """A loop of a training without a loader: each round asks a process or thread of the script's own, and waits for the
    answer, on which no later round depends."""

    line: HotLine  # in the loop, at which the training waits; its share is that of the training's stack samples
    loop: tuple[int, int]  # first and last line
    threads: bool = False  # of the training process; else processes
    helpers: int = 0  # that were seen at work, or that their executor may have, as written
    seen: int = 0  # looks, of threads stack samples, at which any of them was at work,
    alone: int = 0  # and no other one was


@dataclass(frozen=True, slots=True)
class Strain:
    """What making batches took of the machine for a few seconds of a training that waits for them."""

    pid: int  # of the process that trains
    at: float = 0.0
    seconds: float = 0.0
    looks: int = 0
    cores: float = 0.0  # processors that it may use: affinity, and the quota of its cgroups
    cpu: float = 0.0  # processors that the processes of the run kept busy,
    training: float | None = None  # of these the training process itself,
    others: float = 0.0  # and anybody else, of those allowed
    delayed: float = 0.0  # of the training process: seconds a second in which it was ready and had no processor
    fetchers: tuple[Fetcher, ...] = ()
    together: int = 0  # looks in which two or more were making a batch,
    alone: int = 0  # and those of them in which at most one was not waiting for a lock
    hot: HotLine | None = None
    lock: HotLine | None = None  # the line at which they wait for a lock
    drawing: HotLine | None = None  # with workers: the line of the sampler in which the training spends its waits
    steps: int = 0  # made meanwhile,
    stacks: tuple[SeenStack, ...] = ()  # and what was seen of a training without a loader
    turns: Turns | None = None  # that its helpers take, as one loop makes them do


@dataclass(frozen=True, slots=True)
class PageCopy:
    """Changed pages of a forked worker in bytes: its own and those shared with its parent, at first and at last."""

    pid: int
    seconds: float = 0.0
    private_before: int = 0
    shared_before: int = 0
    private: int = 0
    shared: int = 0


@dataclass(frozen=True, slots=True)
class StepTrend:
    """Steps of one process over its whole life, thinned out as it grows longer."""

    pid: int
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent the signal that ended the run, as the kernel says."""

    signal: int
    pid: int = 0  # 0: the kernel itself (a closed terminal), or not known
    command: str = ""
    ancestor: bool = False  # one of our own parents: a launcher, a scheduler's step, a shell
    terminal: bool = False  # it has the same controlling terminal as the run: a person, most likely
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class PathFact:
    """What came of trying a path that a sample keeps trying, or a lock file."""

    path: str
    exists: bool
    error: str = ""  # strerror of the failing try, e.g. "No such file or directory"
    age: float | None = None
    text_pid: int | None = None  # a pid written in it (lock files)
    pid_alive: bool | None = None
    users: tuple[int, ...] = ()  # processes that have it open
    expression: str = ""  # in the user's source, that gave the path; empty where it came from elsewhere
    pid: int | None = None  # the process in whose frame it was read; None: another way


@dataclass(frozen=True, slots=True)
class Case:
    schema: int = CASE_SCHEMA
    command: tuple[str, ...] = ()
    cwd: str = ""
    now: float = 0.0
    clock_offset: float = 0.0
    seconds: float = 0.0
    outcome: Outcome = "running"
    interrupted: bool = False  # Ctrl-C (or SIGTERM) came: a suspect is then reported with its confidence
    asked: bool = False  # a person looks at a run that was never prepared: a suspect counts as at Ctrl-C
    root: int | None = None  # pid of what we started, or attached to
    stdin: str = ""  # what standard input is: terminal, pipe, file, null, closed
    exits: tuple[Exit, ...] = ()
    stalls: tuple[Stall, ...] = ()
    times: Times = field(default_factory=Times)
    looks: tuple[Look, ...] = ()  # oldest first; the last is the present
    flights: tuple[Flight, ...] = ()
    loaders: tuple[LoaderSettings, ...] = ()
    workers_started: tuple[WorkersStarted, ...] = ()
    processes_starting: tuple[ProcessStarting, ...] = ()
    processes_ready: tuple[ProcessReady, ...] = ()
    healed: tuple[Healed, ...] = ()
    passes_ended: tuple[PassEnded, ...] = ()
    empty_passes: tuple[EmptyPass, ...] = ()
    asked_after_end: tuple[AskedAfterEnd, ...] = ()
    short_passes: tuple[ShortPasses, ...] = ()
    over_length: tuple[OverLength, ...] = ()
    same_batches: tuple[SameBatch, ...] = ()
    repeats: tuple[Repeats, ...] = ()
    data_waits: tuple[DataWait, ...] = ()
    gpu_copies: tuple[GpuCopies, ...] = ()
    loop_snapshots: tuple[LoopSnapshot, ...] = ()
    same_given: tuple[SameGiven, ...] = ()
    feedings: tuple[Feeding, ...] = ()
    event_files: tuple[EventFile, ...] = ()
    cells: tuple[NotebookCell, ...] = ()
    library_loops: tuple[LibraryLoop, ...] = ()
    growth_snapshots: tuple[GrowthSnapshot, ...] = ()
    loss_graphs: tuple[LossGraph, ...] = ()
    learnings: tuple[Learning, ...] = ()  # the latest of each process that trains
    data: tuple[DataSeen, ...] = ()  # the latest of each process
    scans: tuple[Scanned, ...] = ()
    aliased_batches: tuple[AliasedBatch, ...] = ()
    rewritten_data: tuple[RewrittenData, ...] = ()
    repeated_pickles: tuple[RepeatedPickles, ...] = ()
    first_sent: tuple[FirstSent, ...] = ()
    lost_rows: tuple[LostRows, ...] = ()
    kept_in_one_place: tuple[KeptInOnePlace, ...] = ()
    moved_handles: tuple[MovedHandle, ...] = ()
    changed_datasets: tuple[ChangedDataset, ...] = ()
    worker_datasets: tuple[WorkerDataset, ...] = ()
    deaths: tuple[Died, ...] = ()
    tasks_failed: tuple[TaskFailed, ...] = ()
    thread_deaths: tuple[ThreadDied, ...] = ()
    samples_failed: tuple[SampleFailed, ...] = ()
    batches_failed: tuple[BatchFailed, ...] = ()
    left_by_exit: tuple[LeftByExit, ...] = ()
    children_ended: tuple[ChildEnded, ...] = ()
    worlds_joined: tuple[WorldJoined, ...] = ()
    reductions_unfinished: tuple[ReductionUnfinished, ...] = ()
    paths: tuple[PathFact, ...] = ()
    memory: tuple[MemoryCurve, ...] = ()
    groups: tuple[MemoryGroup, ...] = ()
    trends: tuple[StepTrend, ...] = ()
    strains: tuple[Strain, ...] = ()  # oldest first
    copies: tuple[PageCopy, ...] = ()
    senders: tuple[Sender, ...] = ()  # of signals that came to the supervisor to be passed on, oldest first
    probes_off: tuple[tuple[str, str], ...] = ()
    overhead: float = 0.0  # seconds of our own hooks in the training process, as far as measured
    machine: dict[str, Any] = field(default_factory=dict)

    def flight_of(self, pid: int) -> Flight | None:
        return next((flight for flight in self.flights if flight.pid == pid), None)
