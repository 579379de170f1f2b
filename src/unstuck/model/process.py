"""One process of the run: as it looks from outside, and as it described itself in its flight file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["main", "rank", "worker", "launcher", "helper", "unknown"]
Phase = Literal["start", "data", "between", "backward", "optimizer", "fetch", "idle", "ended"]
WaitKind = Literal[
    "running",  # on a processor, or ready to be
    "lock",  # futex in private memory: a threading lock, condition, event, join, or a native pool
    "shared-lock",  # futex in memory shared between processes: a multiprocessing lock, semaphore, queue lock
    "file-lock",  # flock, fcntl(F_SETLKW), lockf
    "pipe-read",
    "pipe-write",
    "child",  # wait4/waitid, or a poll on a multiprocessing sentinel
    "sleep",
    "terminal-read",
    "socket",  # connect, accept, recv, send
    "poll",  # poll/select/epoll on descriptors that fit no kind above
    "file",  # read, write, open, fsync of a file or FIFO; also anything in uninterruptible sleep (D)
    "device",  # ioctl or poll on an accelerator's device file
    "stopped",  # SIGSTOP, SIGTSTP, the freezer, or a debugger
    "other",
    "unknown",  # the kernel would not say
]


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame, with what its source says about the line it is on."""

    file: str
    line: int
    function: str
    code: str = ""  # the line, stripped; empty where the source cannot be read
    user: bool = False  # the user's own code: not the standard library, not site-packages, not ours
    loop: tuple[int, int] | None = None  # first and last line of the innermost loop around the line, in this function
    holds: tuple[str, ...] = ()  # expressions of the `with` blocks around the line: `with self.lock:` gives "self.lock"
    takes: str = ""  # what the line itself acquires: the `with` item it opens, or x in `x.acquire(...)`
    polls: str = ""  # path expression whose end the loop around the line waits for: "x" of `exists(x)`, `open(x, "x")`
    tries: str = ""  # path expression that the loop opens again and again, swallowing the error; "?": not by a name
    arms: tuple[tuple[int, int], ...] = ()  # `if`s around it, outermost first: line, and arm (1: else)
    guards: tuple[int, ...] = ()  # lines of what stands before it in its blocks and may have gone round it by a jump
    leaves: bool = False  # after this statement the function returns
    arguments: tuple[tuple[str, str], ...] = ()  # locals as text: some of torch's loader frames; of others on request


@dataclass(frozen=True, slots=True)
class Wait:
    """Why the kernel says a thread is not running."""

    kind: WaitKind
    syscall: str = ""
    channel: str = ""  # the kernel's wait channel (`/proc/PID/wchan`)
    timed: bool | None = None  # the wait has a time limit of its own; None: not known
    fd: int | None = None
    target: str = ""  # what is waited for, readable: a path, "pipe:[123]", "tcp 10.0.0.1:443", "stdin"
    others: tuple[int, ...] = ()  # processes at the other end (lock holder, pipe end, child), never the waiting one
    also_self: bool = False  # the waiting process has the other end open too
    address: int | None = None
    value: int | None = None  # of the semaphore at `address`
    parent_value: int | None = None  # at the same address in the parent (a forked child has the parent's addresses)


@dataclass(frozen=True, slots=True)
class Thread:
    tid: int
    name: str = ""
    state: str = "?"  # the kernel's letter: R, S, D, T, t, Z, X
    cpu: float = 0.0  # seconds used so far
    switches: int = 0  # context switches so far: unchanged between two looks means it never ran
    idle: float | None = None  # seconds since it was last on a processor, where that was read
    wait: Wait | None = None
    python: bool = False  # it has a Python stack
    frames: tuple[Frame, ...] = ()  # innermost first
    native: tuple[str, ...] = ()  # function names, innermost first, where a native look was taken

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame of the user's code."""
        return next((frame for frame in self.frames if frame.user), None)

    @property
    def current_frame(self) -> Frame | None:
        """Where it is: in the user's code if it has any, else in its innermost frame."""
        return self.user_frame or (self.frames[0] if self.frames else None)


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    ppid: int = 0
    began: float = 0.0
    role: Role = "unknown"
    command: tuple[str, ...] = ()
    is_python: bool = False
    forked: bool = False  # without exec: it has the parent's memory as it was at the fork
    worker: int | None = None
    rank: int | None = None
    world: int | None = None  # how many ranks its launcher said there are
    threads: tuple[Thread, ...] = ()  # the main thread first
    stacks_by: str = ""  # what gave the Python stacks: py-spy, faulthandler, or "" for none
    stacks_missing: str = ""  # why a better source could not be used
    recorded: bool = False  # it has a flight file
    rss: int = 0
    io_bytes: int = 0
    children_cpu: float = 0.0
    quiet: float | None = None  # seconds since anybody wrote to its stdout or stderr; None: not known
    open_files: int | None = None
    open_files_limit: int | None = None
    device: bool = False  # it has an accelerator's device file open

    @property
    def main_thread(self) -> Thread | None:
        return self.threads[0] if self.threads else None

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame of the user's code in the main thread."""
        return self.main_thread.user_frame if self.main_thread else None


@dataclass(frozen=True, slots=True)
class FileLock:
    """A held lock of `/proc/locks` that somebody in the tree waits for."""

    path: str
    kind: str  # FLOCK, POSIX or OFDLCK
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
    stacks: bool = False  # Python stacks were taken (a cheap look has none)
    trouble: tuple[str, ...] = ()  # what could not be seen, and the command that would help

    def process(self, pid: int) -> Process | None:
        return next((process for process in self.processes if process.pid == pid), None)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long one kind of thing takes in this run, in seconds: a phase, or a sample."""

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
    cpu: float = 0.0  # processor seconds of the whole process
    size: int = 0  # elements of its batch; 0: not looked at, or it came from no DataLoader
    number: int = 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """One batch that a worker made."""

    ended: float
    seconds: float
    sample: int | None = None  # its first index; None: not an integer
    samples: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Crash:
    """What faulthandler wrote when a process died of a fatal signal."""

    signal: str  # SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL
    thread: Thread | None = None  # in which it happened; None: it ran no Python
    threads: tuple[Thread, ...] = ()  # all Python threads, the main one first


@dataclass(frozen=True, slots=True)
class Collective:
    """One call that the ranks of a group make together."""

    kind: str
    """all_reduce, barrier …; of DistributedDataParallel: ddp_parameters, ddp_broadcast, ddp_gradients."""
    group: str = ""
    number: int = 0  # in that group, as this rank counts
    entered: float = 0.0
    left: float | None = None  # None: not yet
    raised: bool = False  # it left with an exception
    asynchronous: bool = False  # then `left` means that it was handed over
    pending: bool = False  # it begins with the backward pass that is to come, if one comes
    peer: int | None = None  # source or destination rank
    dtype: str = ""
    shape: tuple[int, ...] = ()  # the first four sizes
    dimensions: int | None = None  # None: no tensor, or not known
    file: str = ""  # the user's line
    line: int = 0
    function: str = ""
    step: int = 0
    arms: tuple[tuple[int, int], ...] = ()  # as of a Frame, of the last one, as the next two
    guards: tuple[int, ...] = ()
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class RankGroup:
    """A process group of torch, as one rank knows it."""

    name: str
    size: int = 0
    runs: tuple[tuple[int, int, int], ...] = ()  # first, last and step of each run of its ranks

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(rank for first, last, step in self.runs for rank in range(first, last + 1, max(step, 1)))


@dataclass(frozen=True, slots=True)
class LastPass:
    """The last pass over one loader."""

    loader: int  # its number in the process
    number: int  # of the pass, counted from 1
    batches: int | None = None  # that it gave; None: it has not come to its end
    steps: int = 0  # training steps made in it, once it is over


@dataclass(frozen=True, slots=True)
class Flight:
    """What one process wrote into its flight file, as it stood at `read_at`."""

    pid: int
    began: float = 0.0
    read_at: float = 0.0
    inferred: bool = False  # the process wrote nothing: this is what its stacks show from outside
    role: Role = "unknown"
    worker: int | None = None
    rank: int | None = None
    phase: Phase = "start"
    since: float = 0.0  # when the phase began
    step: int = 0
    epoch: int = 0  # passes over a loader begun
    batch: int = 0  # batches of the present pass
    batch_bytes: int = 0  # of the tensors of the last batch looked at; in a worker, of the last one it made
    progress: int = 0  # changes with every seam passed
    awaits_worker: int | None = None  # number of the worker whose batch it waits for, where known
    loaders: int = 0  # passes begun over any loader, training or not; 0: no DataLoader was ever used
    forked: bool = False
    ended: bool = False  # it left through the interpreter's own exit
    fetching: bool = False  # it makes a batch itself (a worker, or main with num_workers=0)
    collating: bool = False  # every sample of the batch is there; collate_fn is at work
    sample: int | None = None  # index of the sample in work (map-style datasets with integer indices)
    sample_key: str = ""  # the index as text where it is not an integer
    position: int | None = None  # of the sample in its batch; for an iterable dataset, samples drawn so far
    sample_since: float = 0.0
    attempts: int = 0  # files opened and connections tried inside the sample in work
    attempt_target: str = ""  # the last of these: a path, or host:port
    sleeps: int = 0  # calls of time.sleep inside the sample in work
    paces: dict[str, Pace] = field(default_factory=dict)  # by kind: data, between, backward, optimizer, sample, fetch
    steps: tuple[Step, ...] = ()
    fetches: tuple[Fetch, ...] = ()  # of a worker: its last batches, all or, where they are quick, one in eight
    alive: bool = True
    moved: float = 0.0  # when the supervisor last saw its progress change; 0: never looked twice
    probes_off: tuple[tuple[str, str], ...] = ()
    crash: Crash | None = None  # of a dead process: the fatal signal it left a trace of
    started: float = 0.0  # of its process, by the kernel's clock; after an exec the file `began` long after that
    world: int | None = None  # how many ranks there are to be; None: it never asked to be one
    forming: float = 0.0  # when it asked (init_process_group),
    formed: float | None = None  # and when all had come; None: not yet, or that failed
    disbanded: float | None = None  # when it left (destroy_process_group)
    groups: tuple[RankGroup, ...] = ()  # that it has used
    collectives: tuple[Collective, ...] = ()  # the last ones, oldest first
    dumped: tuple[Collective, ...] = ()  # the same as the backend's own flight recorder wrote them, where it did
    collective_count: int = 0
    passes: tuple[LastPass, ...] = ()  # the last one over each loader
    in_collectives: float = 0.0  # seconds inside collectives so far; those that a backward pass begins are in its phase
