"""Messages about memory: of the machine, of its limits, and of the device."""

from __future__ import annotations

from unstuck.explain.message import Message, says

OOM_KILL = Message(
    "oom-kill",
    "Out of memory: Killed process … · oom-kill event · OOMKilled",
    says(
        r"out of memory: killed process",
        r"memory cgroup out of memory",
        r"detected \d+ oom[-_]kill event",
        r"oom-kill:constraint=",
        r"oomkilled",
        r"task \d+: out of memory",
    ),
    "The kernel ended a process because memory ran out, of the machine or of the job's limit. "
    "Workers count: each forked one comes to own what it touches of the dataset.",
    (
        ("out-of-memory-kill", "memory rises within the first steps and then stays: it is too much for the limit"),
        ("memory-leak-in-loop", "memory rises with every step until the end"),
        ("dataset-copied-to-workers", "it is the workers that grow, and fewer of them need less"),
    ),
    ("dmesg -T | grep -i oom", "cat /sys/fs/cgroup/memory.max", "unstuck run train.py"),
)

CUDA_OUT_OF_MEMORY = Message(
    "cuda-out-of-memory-error",
    "CUDA out of memory. Tried to allocate …",
    says(
        r"cuda out of memory",
        r"hip out of memory",
        r"cuda error: out of memory",
        r"cublas_status_alloc_failed",
        r"mps backend out of memory",
    ),
    "The device had no room for one more tensor. The numbers in the message say whose memory it is: “allocated by "
    "PyTorch” is yours, “this process has” less than is in use means another process shares the device.",
    (
        ("cuda-out-of-memory", "it fails in the first steps: model and batch together are too large"),
        ("memory-leak-in-loop", "the first steps pass and memory rises with each: losses or outputs are kept"),
        ("graph-grows-every-step", "memory and the time of backward rise together: a state is never detached"),
    ),
    ("nvidia-smi", "unstuck run train.py"),
)

HOST_MEMORY = Message(
    "cannot-allocate-memory",
    "Cannot allocate memory · DefaultCPUAllocator: can't allocate memory · MemoryError",
    says(
        r"cannot allocate memory",
        r"defaultcpuallocator: (?:can't|not enough)",
        r"unable to allocate [\d.]{1,20} [kmgtp]ib for an array",
        r"\nmemoryerror",
        r"std::bad_alloc",
    ),
    "The process asked for memory and was refused, so nobody was killed: the traceback shows who asked. "
    "A limit of its own (`ulimit -v`), strict overcommit or one absurdly large request does that.",
    (
        (
            "uncaught-exception",
            "the one request is larger than the machine: a shape is wrong (the message has the bytes)",
        ),
        ("memory-leak-in-loop", "the request is ordinary and the process had grown with every step"),
        ("dataset-copied-to-workers", "it comes from os.fork or from starting a worker"),
    ),
    ("ulimit -v", "free -h", "sysctl vm.overcommit_memory", "unstuck run train.py"),
)

NEW_THREAD = Message(
    "cannot-start-thread",
    "can't start new thread · pthread_create failed",
    says(r"can't start new thread", r"pthread_create(?:\(\))? failed"),
    "The system refused one more thread. "
    "Each worker brings threads of its own (OpenMP, BLAS, decoders), so workers × threads counts against the limit.",
    (
        ("thread-oversubscription", "`ps -eLf | wc -l` is in the hundreds: threads per worker times workers"),
        ("uncaught-exception", "that count grows with the steps: threads are started and never joined"),
    ),
    ("ulimit -u", "ps -eLf | wc -l", "cat /sys/fs/cgroup/pids.max", "OMP_NUM_THREADS=1 unstuck run train.py"),
)

UNAVAILABLE = Message(
    "temporarily-unavailable",
    "Resource temporarily unavailable · database is locked · unable to lock file",
    says(r"resource temporarily unavailable", r"database is locked", r"unable to lock file"),
    "Somebody else has what was asked for, and the caller did not wait for it. "
    "The same words come from a lock on a file and from a limit on processes.",
    (
        ("file-lock-held", "the traceback is in flock, lockf, h5py or sqlite3: another process has the file locked"),
        ("stale-lock-file", "there is a lock file beside the data, and no process has it open"),
        ("too-many-workers", "the traceback is in os.fork: there are as many processes as `ulimit -u` allows"),
    ),
    ("cat /proc/locks", "fuser -v FILE", "ulimit -u", "unstuck run train.py"),
)
