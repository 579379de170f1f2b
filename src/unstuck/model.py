"""The Case and everything in it: plain frozen data, the same in memory, on disk and in a rule.

    record, observe ──▶ Case ──▶ rules ──▶ Finding | Question ──▶ render

Times are seconds. Moments (`at`, `since`, `began`) are on the machine's monotonic clock, so that a flight
file, a look and the supervisor agree; `Case.clock_offset` turns one into wall-clock time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from unstuck.recorder.records.data import DataSeen
from unstuck.recorder.records.deaths import BatchFailed, ChildEnded, Died, LeftByExit, SampleFailed, ThreadDied
from unstuck.recorder.records.growth import GrowthSnapshot, LossGraph
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.loaders import (
    AskedAfterEnd,
    DataWait,
    EmptyPass,
    GpuCopies,
    LoaderSettings,
    OverLength,
    PassEnded,
    Repeats,
    SameBatch,
    ShortPasses,
    WorkersStarted,
)
from unstuck.recorder.records.loops import LoopSnapshot
from unstuck.recorder.records.scan import Scanned
from unstuck.recorder.records.sharing import AliasedBatch, ChangedDataset, MovedHandle, WorkerDataset

SCHEMA = 1
"""Of the JSON report."""
CASE_SCHEMA = 2
"""Of a saved Case: 2 has typed records in the place of facts."""

Severity = Literal["error", "warning", "info"]
SeenBy = Literal["flight", "py-spy", "faulthandler", "kernel", "exit"]
Role = Literal["main", "rank", "worker", "launcher", "helper", "unknown"]
Phase = Literal["start", "data", "between", "backward", "optimizer", "fetch", "idle", "ended"]
Outcome = Literal["running", "finished", "stopped", "died", "interrupted"]
WaitKind = Literal[
    "running",  # on a processor, or ready to be
    "lock",  # futex in private memory: a threading lock, condition, event, join, or a native pool
    "shared-lock",  # futex in memory shared between processes: a multiprocessing lock, semaphore, queue lock
    "file-lock",  # flock, fcntl(F_SETLKW), lockf
    "pipe-read",
    "pipe-write",
    "child",  # wait4/waitid, or a poll on a multiprocessing sentinel
    "sleep",
    "terminal-read",  # a read on a terminal
    "socket",  # connect, accept, recv, send
    "poll",  # poll/select/epoll on descriptors that fit no kind above
    "file",  # read, write, open, fsync of a file or FIFO; also anything in uninterruptible sleep (D)
    "device",  # ioctl or poll on an accelerator's device file
    "stopped",  # SIGSTOP, SIGTSTP, the freezer, or a debugger
    "other",
    "unknown",  # the kernel would not say
]


# --- where code is -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame, with what its source says about the line it is on."""

    file: str
    line: int
    function: str
    code: str = ""
    """Text of the line, stripped; empty where the source cannot be read."""
    user: bool = False
    """The user's own code: not the standard library, not site-packages, not ours."""
    loop: tuple[int, int] | None = None
    """First and last line of the innermost `while`/`for` around the line, inside this function."""
    holds: tuple[str, ...] = ()
    """Expressions of the `with` blocks around the line: `with self.lock:` gives "self.lock"."""
    takes: str = ""
    """What the line itself is acquiring: the `with` item it opens, or x in `x.acquire(...)`."""
    polls: str = ""
    """Path expression whose existence the loop around the line keeps testing: `os.path.exists(x)`, `x.exists()`,
    `open(x, "x")`, `os.open(x, … O_EXCL …)` give "x"."""
    tries: str = ""
    """What the loop around the line keeps trying and failing at: its `try` swallows the error and goes round again.
    The path it opens, as written; "?" where it opens none, or not by a name."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Locals as text: a few of torch's own loader frames (worker, batch, index); of others only if asked for."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why the kernel says a thread is not running."""

    kind: WaitKind
    syscall: str = ""
    channel: str = ""
    """The kernel's wait channel (`/proc/PID/wchan`), for the evidence line."""
    timed: bool | None = None
    """The wait has a time limit of its own; None: not known."""
    fd: int | None = None
    target: str = ""
    """What is waited for, readable: a path, "pipe:[123]", "tcp 10.0.0.1:443", "stdin"."""
    others: tuple[int, ...] = ()
    """Processes at the other end: who holds the file lock, has the pipe's other end open, maps the same
    semaphore, is the child waited for. Never the waiting process itself."""
    also_self: bool = False
    """The waiting process has the other end open too (a pipe whose both ends it keeps)."""
    address: int | None = None
    value: int | None = None
    """Value of the semaphore at `address`, where it could be read."""
    parent_value: int | None = None
    """Value at the same address in the parent (a forked child has the parent's addresses)."""


@dataclass(frozen=True, slots=True)
class Thread:
    tid: int
    name: str = ""
    state: str = "?"
    """Kernel state letter: R, S, D, T, t, Z, X."""
    cpu: float = 0.0
    """Processor seconds used so far."""
    switches: int = 0
    """Context switches so far (voluntary and not): unchanged between two looks means it never ran."""
    idle: float | None = None
    """Seconds since it was last on a processor, where the kernel was asked and says."""
    wait: Wait | None = None
    python: bool = False
    """It has a Python stack."""
    frames: tuple[Frame, ...] = ()
    """Innermost first."""
    native: tuple[str, ...] = ()
    """Native function names, innermost first, where a native look was taken."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    ppid: int = 0
    began: float = 0.0
    role: Role = "unknown"
    command: tuple[str, ...] = ()
    is_python: bool = False
    forked: bool = False
    """Forked from its parent without exec: it has the parent's memory as it was at the fork."""
    worker: int | None = None
    rank: int | None = None
    world: int | None = None
    """How many ranks its launcher said there are."""
    threads: tuple[Thread, ...] = ()
    """The main thread first."""
    stacks_by: str = ""
    """Rung of the ladder that gave the Python stacks: py-spy, faulthandler, or "" for none."""
    stacks_missing: str = ""
    """Why a better rung could not be used."""
    recorded: bool = False
    """A flight file of it was found."""
    rss: int = 0
    io_bytes: int = 0
    children_cpu: float = 0.0
    quiet: float | None = None
    """Seconds since anything was written to its standard output or error, by anybody; None: not known."""
    open_files: int | None = None
    open_files_limit: int | None = None
    device: bool = False
    """It has an accelerator's device file open."""

    @property
    def main_thread(self) -> Thread | None:
        return self.threads[0] if self.threads else None


@dataclass(frozen=True, slots=True)
class FileLock:
    """One held lock of `/proc/locks` that somebody in the tree waits for."""

    path: str
    kind: str
    """FLOCK, POSIX or OFDLCK."""
    mode: str
    holder: int | None
    holder_command: str = ""
    holder_alive: bool | None = None
    waiters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the whole tree from outside. Processes are in tree order, the root first."""

    at: float
    processes: tuple[Process, ...] = ()
    locks: tuple[FileLock, ...] = ()
    stacks: bool = False
    """Python stacks were taken (a cheap look has none)."""
    trouble: tuple[str, ...] = ()
    """What could not be seen, and the command that would help."""


# --- what the processes wrote themselves ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pace:
    """How long one kind of thing takes in this run: a phase, or a sample."""

    count: int = 0
    median: float = 0.0
    p99: float = 0.0
    longest: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One training step: from one batch (or optimizer step) to the next."""

    ended: float
    seconds: float
    data: float = 0.0
    backward: float = 0.0
    optimizer: float = 0.0
    cpu: float = 0.0
    """Processor seconds of the whole process."""
    size: int = 0
    """Elements of its batch; 0: not looked at, or it came from no DataLoader."""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Crash:
    """What faulthandler wrote when a process died of a fatal signal."""

    signal: str
    """SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL."""
    thread: Thread | None = None
    """The thread it happened in; None: it ran no Python."""
    threads: tuple[Thread, ...] = ()
    """All Python threads, the main one first."""


@dataclass(frozen=True, slots=True)
class Flight:
    """What one process wrote into its flight file, as it stood at `read_at`."""

    pid: int
    began: float = 0.0
    read_at: float = 0.0
    inferred: bool = False
    """The process wrote nothing: this is what its stacks show from outside."""
    role: Role = "unknown"
    worker: int | None = None
    rank: int | None = None
    phase: Phase = "start"
    since: float = 0.0
    """When the phase began."""
    step: int = 0
    epoch: int = 0
    """Passes over a loader begun."""
    batch: int = 0
    """Batches of the present pass."""
    batch_bytes: int = 0
    """Bytes of the tensors of the last batch looked at; in a worker, of the last one it made."""
    progress: int = 0
    """Rises with every seam passed; unchanged between two readings means that nothing moved."""
    awaits_worker: int | None = None
    """Number of the worker whose batch it waits for, where that is known."""
    loaders: int = 0
    """Passes begun over any loader, training or not; 0: no DataLoader was ever used."""
    forked: bool = False
    ended: bool = False
    """It left through the interpreter's own exit."""
    fetching: bool = False
    """A batch is being fetched in this very process (a worker, or main with num_workers=0)."""
    collating: bool = False
    """Every sample of the batch is drawn; collate_fn is at work."""
    sample: int | None = None
    """Index of the sample in work (map-style data sets with integer indices)."""
    sample_key: str = ""
    """The index as text where it is not an integer."""
    position: int | None = None
    """Position of the sample in its batch; for an iterable data set, samples drawn so far."""
    sample_since: float = 0.0
    attempts: int = 0
    """Files opened and connections tried inside the sample in work."""
    attempt_target: str = ""
    """The last of these: a path, or host:port."""
    sleeps: int = 0
    """Calls of time.sleep inside the sample in work."""
    paces: dict[str, Pace] = field(default_factory=dict)
    """By kind: data, between, backward, optimizer, sample, fetch."""
    steps: tuple[Step, ...] = ()
    alive: bool = True
    moved: float = 0.0
    """When the supervisor last saw its progress change; 0: never looked twice."""
    probes_off: tuple[tuple[str, str], ...] = ()
    crash: Crash | None = None
    """Of a dead process: the fatal signal it left a trace of."""
    started: float = 0.0
    """When its process was started, by the kernel's clock; after an exec the file `began` long after that."""


# --- the stall -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Times:
    """When a standstill counts; `--stall-after` replaces them all."""

    suspect: float = 10.0
    proven: float = 5.0
    """A proven deadlock is named once it has stood so long."""
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
    standing: float
    """Seconds without a seam passed, less the time that does not count."""
    pace: Pace = field(default_factory=Pace)
    """The run's own pace for this kind of phase."""
    seams: bool = True
    """Any seam ever fired in this process; where none did the clock alone gives no verdict."""
    excuse: str = ""
    """Why it does not count now: compiling, saving, at a debugger, stopped; empty if it counts."""
    still: float = 0.0
    """Seconds for which stacks, I/O bytes, memory and child CPU all showed no progress."""
    suspect: bool = False
    """Longer than this run's own pace allows; at Ctrl-C such a standstill is reported as it stands."""
    at_least: bool = False
    """`standing` is only what could be seen of it: it may have stood much longer."""


# --- the run -------------------------------------------------------------------------------------------------


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
    """Bytes of the process that are in memory."""
    step: int = 0
    """Training steps made by then (of the process itself)."""


@dataclass(frozen=True, slots=True)
class MemoryCurve:
    """Memory of one process over its life, thinned out as it grows longer."""

    pid: int
    points: tuple[MemoryPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A memory cgroup around processes of the run: their own, and the one with the narrowest limit above it."""

    path: str
    version: int
    """1 or 2; 0: not a cgroup but the whole machine."""
    limit: int | None = None
    """None: no limit of its own."""
    usage: int = 0
    peak: int = 0
    kills_before: int = 0
    """Its counter of OOM kills when the run began; -1: it could not be read."""
    kills: int = 0
    """The counter as last read."""
    pids: tuple[int, ...] = ()
    """Processes of the run in it, as far as known."""


@dataclass(frozen=True, slots=True)
class HotLine:
    """The line of the user's code in which most of the time that batches take is spent."""

    file: str
    line: int
    function: str
    code: str = ""
    share: float = 0.0
    """Of the samples taken while a batch was being made."""
    samples: int = 0
    """All of these."""
    waiting: str = ""
    """What the processes mostly wait for while they make batches, as a kind of wait; empty: they compute."""
    takes: str = ""
    """The lock that the line takes, as it is written there."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """A process that makes batches, over the seconds in which it was watched."""

    pid: int
    worker: int | None = None
    busy: float = 0.0
    """Share of the looks in which it was making a batch."""
    blocked: float = 0.0
    """Share of the looks in which it waited for a lock meanwhile."""
    cpu: float = 0.0
    """Processors it kept busy, on average."""
    delayed: float = 0.0
    """Seconds a second, over all its threads, in which it was ready to run and had no processor."""
    threads: int = 1
    """Threads of it that ran."""


@dataclass(frozen=True, slots=True)
class Strain:
    """What making batches asked of the machine for a few seconds of a training that waits for them."""

    pid: int
    """The process that trains."""
    at: float = 0.0
    seconds: float = 0.0
    looks: int = 0
    cores: float = 0.0
    """Processors that it may use: affinity, and the quota of its cgroups."""
    cpu: float = 0.0
    """Processors that the processes of the run kept busy,"""
    training: float | None = None
    """and of these the training process itself."""
    others: float = 0.0
    """Processors, of those allowed, that anybody else kept busy."""
    delayed: float = 0.0
    """Of the training process: seconds a second in which it was ready and had no processor."""
    fetchers: tuple[Fetcher, ...] = ()
    together: int = 0
    """Looks in which two or more were making a batch,"""
    alone: int = 0
    """and those of them in which at most one was not waiting for a lock."""
    hot: HotLine | None = None
    lock: HotLine | None = None
    """The line at which they wait for a lock."""
    drawing: HotLine | None = None
    """Beside workers: the line of the sampler in which the training itself spends its waits, drawing indices."""


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
    """Who sent the signal that ended the run, as the kernel told the supervisor."""

    signal: int
    pid: int = 0
    """0: the kernel itself (a closed terminal), or not known."""
    uid: int | None = None
    command: str = ""
    ancestor: bool = False
    """It is one of our own parents: a launcher, a scheduler's step, a shell."""
    terminal: bool = False
    """It has the same controlling terminal as the run: a person, most likely."""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class PathFact:
    """What the supervisor found when it tried a path that a sample keeps trying, or a lock file."""

    path: str
    exists: bool
    error: str = ""
    """strerror of the failing try, e.g. "No such file or directory"."""
    age: float | None = None
    text_pid: int | None = None
    """A pid written in it (lock files)."""
    pid_alive: bool | None = None
    users: tuple[int, ...] = ()
    """Processes that have it open."""
    expression: str = ""
    """The expression in the user's source that gave the path, where it came from there."""
    pid: int | None = None
    """The process in whose frame it was read; None: another way."""


@dataclass(frozen=True, slots=True)
class Case:
    """Everything known about one run. Later families add their own sections, each empty by default."""

    schema: int = CASE_SCHEMA
    command: tuple[str, ...] = ()
    cwd: str = ""
    now: float = 0.0
    clock_offset: float = 0.0
    seconds: float = 0.0
    outcome: Outcome = "running"
    interrupted: bool = False
    """Ctrl-C (or SIGTERM) came: a suspect is then reported with its confidence, verdict or not."""
    asked: bool = False
    """A person looks at a run that was never prepared and wants to know now: a suspect counts as at Ctrl-C."""
    root: int | None = None
    """Pid of what we started, or were attached to."""
    stdin: str = ""
    """What standard input is: terminal, pipe, file, null, closed."""
    exits: tuple[Exit, ...] = ()
    stalls: tuple[Stall, ...] = ()
    times: Times = field(default_factory=Times)
    looks: tuple[Look, ...] = ()
    """Oldest first; the last is the present."""
    flights: tuple[Flight, ...] = ()
    loaders: tuple[LoaderSettings, ...] = ()
    workers_started: tuple[WorkersStarted, ...] = ()
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
    growth_snapshots: tuple[GrowthSnapshot, ...] = ()
    loss_graphs: tuple[LossGraph, ...] = ()
    learnings: tuple[Learning, ...] = ()
    """The latest of each process that trains."""
    data: tuple[DataSeen, ...] = ()
    """The latest of each process."""
    scans: tuple[Scanned, ...] = ()
    aliased_batches: tuple[AliasedBatch, ...] = ()
    moved_handles: tuple[MovedHandle, ...] = ()
    changed_datasets: tuple[ChangedDataset, ...] = ()
    worker_datasets: tuple[WorkerDataset, ...] = ()
    deaths: tuple[Died, ...] = ()
    thread_deaths: tuple[ThreadDied, ...] = ()
    samples_failed: tuple[SampleFailed, ...] = ()
    batches_failed: tuple[BatchFailed, ...] = ()
    left_by_exit: tuple[LeftByExit, ...] = ()
    children_ended: tuple[ChildEnded, ...] = ()
    paths: tuple[PathFact, ...] = ()
    memory: tuple[MemoryCurve, ...] = ()
    groups: tuple[MemoryGroup, ...] = ()
    trends: tuple[StepTrend, ...] = ()
    strains: tuple[Strain, ...] = ()
    """Oldest first."""
    copies: tuple[PageCopy, ...] = ()
    senders: tuple[Sender, ...] = ()
    """Signals that came to the supervisor to be passed on, oldest first."""
    probes_off: tuple[tuple[str, str], ...] = ()
    overhead: float = 0.0
    """Seconds of our own hooks in the training process, as far as measured."""
    machine: dict[str, Any] = field(default_factory=dict)

    def flight_of(self, pid: int) -> Flight | None:
        return next((flight for flight in self.flights if flight.pid == pid), None)


# --- what a rule says ----------------------------------------------------------------------------------------


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
    also: tuple[Where, ...] = ()
    """Further places worth showing: where the holder is, the other end of the pipe."""


@dataclass(frozen=True, slots=True)
class Question:
    """A rule that cannot decide says what would."""

    rule: str
    asks: str
    would_decide: str
