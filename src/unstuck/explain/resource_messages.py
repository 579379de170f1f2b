"""Messages about what ran out: files, disk, shared memory, memory of the host and of the device."""

from __future__ import annotations

from unstuck.explain.message import Message, says

OPEN_FILES = Message(
    "open-files-limit",
    "Too many open files · received 0 items of ancdata",
    says(r"too many open files", r"errno 24\b", r"received \d+ items of ancdata"),
    "A process has as many files open as it is allowed (`ulimit -n`), and every tensor a worker hands over takes one. "
    "“received 0 items of ancdata” is the same limit, hit while a tensor was on its way from a worker.",
    (
        ("too-many-open-files", "the open files are those of your dataset, or the limit is small for so many workers"),
        ("memory-leak-in-loop", "the open files are mostly /dev/shm/torch_… and grow with each step: batches are kept"),
    ),
    ("ulimit -n", "ls -l /proc/PID/fd | grep -c torch_", "unstuck run train.py"),
)

SHARED_MEMORY_ALLOCATE = Message(
    "shared-memory-allocate",
    "unable to allocate shared memory(shm) for file </torch_…>: No space left on device",
    says(
        r"unable to allocate shared memory",
        r"unable to open shared memory object <[^>\n]{1,100}> in read-write mode: no space left",
        r"unable to (?:write to|resize|stretch) file </torch_",
    ),
    "/dev/shm is full: that is where workers put the batches they hand over. "
    "It holds at least workers × prefetch_factor batches, and a container has only 64 MB of it by default.",
    (
        ("shared-memory-full", "one batch times workers times prefetch_factor is more than `df -h /dev/shm` has"),
        ("memory-leak-in-loop", "it is enough for that, but its use grows with each step: batches are kept"),
    ),
    ("df -h /dev/shm", "unstuck run train.py", "docker run --shm-size=8g …"),
)

SHARED_MEMORY_OPEN = Message(
    "shared-memory-open",
    "unable to open shared memory object </torch_…> in read-write mode",
    says(r"unable to open shared memory object"),
    "A tensor should go into /dev/shm, and its file there could not be opened. "
    "The end of the line says why, as a word and as a number; old versions of torch leave it out.",
    (
        ("too-many-open-files", "it ends in (24), or `ulimit -n` is reached"),
        ("shared-memory-full", "it ends in (28), or `df -h /dev/shm` shows no space"),
        ("uncaught-exception", "it ends in (2), (13) or (30): the file was removed, or /dev/shm is not writable here"),
    ),
    ("ulimit -n", "df -h /dev/shm", "unstuck run train.py"),
)

MEMORY_MAPS = Message(
    "memory-maps",
    "unable to mmap … bytes from file </torch_…>: Cannot allocate memory (12)",
    says(r"unable to mmap \d+ bytes from file"),
    "The process has as many mappings as the kernel allows (`vm.max_map_count`, usually 65530), whatever memory is "
    "free. With the sharing strategy file_system every shared tensor is one of them.",
    (
        ("memory-leak-in-loop", "`wc -l /proc/PID/maps` grows with each step: batches are kept"),
        ("uncaught-exception", "it is high from the start: the dataset shares very many small tensors"),
    ),
    ("sysctl vm.max_map_count", "wc -l /proc/PID/maps", "unstuck run train.py"),
)

NO_SPACE = Message(
    "no-space-left",
    "No space left on device · Disk quota exceeded",
    says(r"no space left on device", r"disk quota exceeded"),
    "A file could not grow because its file system, or your share of it, is full. "
    "The file system can also be /dev/shm, which holds semaphores and the batches of workers.",
    (
        ("disk-full", "the traceback is in torch.save, a logger or a write of yours, and `df` shows no space there"),
        ("shared-memory-full", "the traceback ends in multiprocessing/synchronize.py, or a name begins with /torch_"),
    ),
    ("df -h . /tmp /dev/shm", "df -i .", "quota -s", "unstuck run train.py"),
)

CHECKPOINT_WRITE = Message(
    "checkpoint-not-written",
    "PytorchStreamWriter failed writing file · unexpected pos … vs … · iostream error",
    says(
        r"pytorchstreamwriter failed",
        r"inline_container\.cc:\d+\] \. unexpected pos",
        r"basic_ios::clear: iostream error",
        r"requested and \d{1,20} written",
    ),
    "torch.save (or numpy) could not write the whole file, and does not say why. "
    "On a full disk torch says exactly this and not “No space left”; what it leaves behind cannot be loaded.",
    (
        ("disk-full", "`df` shows no space where the checkpoint goes, or your quota is used up"),
        ("uncaught-exception", "there is space and quota: the file system itself failed (network disk, `dmesg`)"),
    ),
    ("df -h FOLDER", "quota -s", "dmesg | tail", "unstuck run train.py"),
)

CHECKPOINT_READ = Message(
    "checkpoint-not-readable",
    "PytorchStreamReader failed reading zip archive: failed finding central directory",
    says(r"pytorchstreamreader failed", r"failed finding central directory"),
    "The checkpoint ends too early: the table at its end is missing. "
    "The run that wrote it did not finish writing, or the copy of it did not.",
    (
        ("disk-full", "the file is shorter than the others, and its disk is or was full"),
        ("ended-from-outside", "the run that wrote it was killed at the time of the file"),
    ),
    ("ls -l --time-style=full-iso FOLDER", "df -h FOLDER", "unstuck run train.py"),
)

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
    "The kernel killed a process because the machine, or the job within its limit, ran out of memory. "
    "Workers count too: each forked one gets its own copy of every page of the dataset it touches.",
    (
        ("out-of-memory-kill", "memory rises in the first steps and then stays: the run needs more than the limit"),
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
    "The GPU had no space for one more tensor. The numbers in the message say whose memory it is: “allocated by "
    "PyTorch” is yours, “this process has” less than is in use means that another process uses the GPU too.",
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
    "An allocation was refused, so nothing was killed: the traceback shows which one. "
    "A limit of the process (`ulimit -v`), strict overcommit or one absurdly large request does that.",
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
    "Another process holds the resource, and the caller did not wait for it. "
    "The same words come from a lock on a file and from a limit on processes.",
    (
        ("file-lock-held", "the traceback is in flock, lockf, h5py or sqlite3: another process has the file locked"),
        ("stale-lock-file", "there is a lock file next to the data, and no process has it open"),
        ("too-many-workers", "the traceback is in os.fork: there are as many processes as `ulimit -u` allows"),
    ),
    ("cat /proc/locks", "fuser -v FILE", "ulimit -u", "unstuck run train.py"),
)
