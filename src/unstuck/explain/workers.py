"""Messages about workers of a DataLoader that died, raised, or did not answer.

Torch has three wordings for one and the same death (“killed by signal”, “exited unexpectedly”, a broken connection),
and which one comes is chance: whether the news or the missing batch arrives first."""

from __future__ import annotations

from unstuck.explain.message import Message, says

_ANY_DEATH = (
    ("out-of-memory-kill", "`dmesg` or memory.events counts an oom kill at that minute"),
    ("shared-memory-full", "“Unexpected bus error encountered in worker” stands above, and /dev/shm is full"),
    ("native-crash", "“Unexpected segmentation fault” stands above, or `dmesg` has a segfault line for the pid"),
    ("too-many-open-files", "“Too many open files” stands above, from the worker's own thread"),
    ("spawn-without-main-guard", "“bootstrapping phase” stands above, and it fails before the first batch"),
    ("ended-from-outside", "nothing stands above and nothing was counted: somebody ended the worker"),
)

WORKER_BUS_ERROR = Message(
    "worker-bus-error",
    "DataLoader worker (pid …) is killed by signal: Bus error",
    says(r"is killed by signal: bus error", r"unexpected bus error encountered in worker"),
    "A worker touched memory behind which there is no room or no file any more. Torch always blames shared memory for "
    "it, but a new torch reports a full /dev/shm in other words, and a memory-mapped file that shrank ends just so.",
    (
        ("shared-memory-full", "`df -h /dev/shm` shows it full while the training runs"),
        ("native-crash", "/dev/shm has room: a mapped file (np.memmap, Arrow, LMDB) became shorter or its disk failed"),
        ("disk-full", "/dev/shm has room, and the mapped file is one that is being written on a full disk"),
    ),
    ("df -h /dev/shm", "ls -l DATA", "unstuck run train.py", "docker run --shm-size=8g …"),
)

WORKER_CRASHED = Message(
    "worker-crashed",
    "DataLoader worker (pid …) is killed by signal: Segmentation fault",
    says(
        r"is killed by signal: (?:segmentation fault|aborted|floating point exception|illegal instruction)",
        r"unexpected segmentation fault encountered in worker",
        r"unexpected floating-point exception encountered in worker",
    ),
    "Compiled code in a worker crashed: a decoder, a database, an extension, or torch itself. "
    "The traceback shows where the main process was, which has nothing to do with it.",
    (("native-crash", "always: the worker's own stack and the sample it had in hand show which code"),),
    ("unstuck run train.py", "dmesg -T | grep segfault", "PYTHONFAULTHANDLER=1 python train.py   # with num_workers=0"),
)

WORKER_KILLED = Message(
    "worker-killed",
    "DataLoader worker (pid …) is killed by signal: Killed",
    says(r"is killed by signal: killed"),
    "Somebody sent the worker SIGKILL, which no program can catch or explain. "
    "The kernel does so when memory runs out, and picks the process that has most of it.",
    (
        ("out-of-memory-kill", "`dmesg` or memory.events counts an oom kill at that minute"),
        (
            "dataset-copied-to-workers",
            "the same, and each worker's memory grows while it reads: fewer workers last longer",
        ),
        ("ended-from-outside", "no oom kill was counted: a person, a scheduler or a container did it"),
    ),
    ("dmesg -T | grep -i oom", "cat /sys/fs/cgroup/memory.events", "unstuck run train.py"),
)

WORKER_STOPPED = Message(
    "worker-stopped",
    "DataLoader worker (pid …) is killed by signal: Terminated",
    says(r"is killed by signal: (?:terminated|hangup|interrupt|quit|user defined|cpu time)"),
    "Somebody asked the worker to end; it did not crash. "
    "The signal went to the worker alone, or reached it before the main process.",
    (
        ("ended-from-outside", "the scheduler's log, or a person, ended the job or a process group at that time"),
        ("uncaught-exception", "your own code terminates children (psutil, multiprocessing) and met the worker"),
    ),
    ("unstuck run train.py", "sacct -j JOB --format=State,ExitCode,End"),
)

WORKER_EXIT_CODE = Message(
    "worker-exit-code",
    "DataLoader worker (pid …) exited unexpectedly with exit code …",
    says(r"exited unexpectedly with exit code"),
    "The worker ended by itself: something in it called exit. "
    "An ordinary exception would have been handed to the main process, with its traceback.",
    (
        ("spawn-without-main-guard", "the code is 1, and a traceback with “bootstrapping phase” stands above"),
        ("unpicklable-dataset", "the code is 1, and a traceback with “Can't get attribute” stands above"),
        ("uncaught-exception", "another code: dataset code, or a library it calls, calls sys.exit or os._exit"),
    ),
    ('grep -rn "exit(" dataset.py', "unstuck run train.py"),
)

WORKER_EXITED = Message(
    "worker-exited",
    "DataLoader worker (pid(s) …) exited unexpectedly",
    says(r"dataloader worker \(pid\(s\) [\d,\s]{1,500}\) exited unexpectedly"),
    "A worker is gone and torch does not know why: it missed the batch before it got the news of the death. "
    "The same death can print “killed by signal” next time, so look above for what the worker itself wrote.",
    _ANY_DEATH,
    ("unstuck run train.py", 'dmesg -T | grep -i "oom\\|segfault"', "df -h /dev/shm"),
)

BATCH_LOST = Message(
    "batch-lost",
    "ConnectionResetError, ConnectionRefusedError, EOFError or FileNotFoundError in rebuild_storage_fd",
    says(r"in rebuild_storage_fd"),
    "A batch was announced, and the worker that should hand over its memory was gone or could not. "
    "It is the third wording torch has for a dead worker, and says nothing about how it died.",
    _ANY_DEATH,
    ("unstuck run train.py", 'dmesg -T | grep -i "oom\\|segfault"', "ulimit -n"),
)

BATCH_NOT_SENT = Message(
    "batch-not-sent",
    "Traceback … queues.py, in _feed: PicklingError",
    says(r"queues\.py\", line \d+, in _feed"),
    "A worker made a batch and could not send it; multiprocessing prints that and drops the batch. "
    "The DataLoader waits for it for ever: the training stands still after this message and says no more.",
    (
        ("waits-for-nobody", "the training stands still after it: the sample has something that cannot be pickled"),
        ("shared-memory-full", "the last line speaks of shared memory"),
    ),
    ("unstuck run train.py",),
)

WORKER_RAISED = Message(
    "worker-raised",
    "Caught … in DataLoader worker process …",
    says(r"caught \w{1,100} in dataloader worker process", r"caught \w{1,100} in pin memory thread"),
    "Code in a worker raised an exception; torch carries it to the main process. "
    "The cause is the last line beneath “Original Traceback”, not the first.",
    (
        ("sample-raises", "the last frame of yours is in the dataset or a transform: one sample is bad"),
        ("uncaught-exception", "it is in worker_init_fn, collate_fn or the sampler: it fails whatever the sample"),
    ),
    ("unstuck run train.py",),
)

TIMED_OUT = Message(
    "loader-timed-out",
    "DataLoader timed out after … seconds",
    says(r"dataloader timed out after"),
    "No batch came within the `timeout` given to the DataLoader, and all workers were alive. "
    "The message cannot say which worker or sample; with `unstuck run` and no timeout it can be seen.",
    (
        ("sample-spins", "a worker uses a whole core (`top`), on one sample"),
        ("waits-on-io", "a worker sleeps in state D, or in a read of a network file"),
        ("file-lock-held", "a worker sleeps in flock or fcntl (`/proc/PID/wchan`, /proc/locks)"),
        ("lock-lost-in-fork", "a worker sleeps in a futex from the first batch on; num_workers=0 works"),
        ("starved-for-data", "nothing stands still: samples are slow, and the timeout is short for them"),
    ),
    ("unstuck run train.py", "py-spy dump --pid WORKER"),
)

PIN_THREAD = Message(
    "pin-memory-thread",
    "Pin memory thread exited unexpectedly",
    says(r"pin memory thread exited unexpectedly"),
    "The thread that copies batches to pinned memory is gone. Its own traceback stands above and has the cause.",
    (
        ("too-many-open-files", "“Too many open files” or “ancdata” stands above"),
        ("cuda-out-of-memory", "a CUDA error stands above"),
        ("uncaught-exception", "anything else: it fails the same with pin_memory=False, and then says where"),
    ),
    ("ulimit -n", "unstuck run train.py"),
)
