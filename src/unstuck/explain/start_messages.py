"""Messages about starting processes and about DataLoader workers."""

from __future__ import annotations

from unstuck.explain.message import Message, says

BOOTSTRAPPING = Message(
    "bootstrapping-phase",
    "An attempt has been made to start a new process before the current process has finished its bootstrapping phase",
    says(r"before the current process has finished its bootstrapping phase", r"freeze_support\(\)"),
    "Workers are started by spawn or forkserver, and each imports your script from the top: there it reaches the line "
    "that starts workers, and would start workers itself. The main process then only reports that workers exited.",
    (("spawn-without-main-guard", 'the line that iterates the DataLoader is not under `if __name__ == "__main__":`'),),
    ("grep -n __main__ train.py", "unstuck run train.py"),
)

CONTEXT_SET = Message(
    "context-already-set",
    "RuntimeError: context has already been set",
    says(r"context has already been set"),
    "`set_start_method` was called a second time in one process. "
    "A spawned worker imports your script, so a call at its top level is a second one there.",
    (
        ("spawn-without-main-guard", "spawn_main or `<string>` stands in the traceback: it is a worker that says it"),
        ("uncaught-exception", "it is the main process: you and a library both set it, or a notebook cell ran twice"),
    ),
    ("grep -rn set_start_method .", "unstuck run train.py"),
)

CANNOT_PICKLE = Message(
    "cannot-pickle",
    "Can't pickle local object … · cannot pickle '_thread.lock' object",
    says(
        r"can't pickle",
        r"cannot pickle",
        r"can't get local (?:object|attribute)",
        r"can't get attribute [^\n]{1,100} on <module '__(?:mp_)?main__'",
        r"attribute lookup [^\n]{1,100} on __main__ failed",
    ),
    "Workers started by spawn or forkserver get the dataset, collate_fn and worker_init_fn as a pickle, and something "
    "in them cannot be pickled. Fork needs no pickle, which is why it worked where fork was the default.",
    (
        (
            "unpicklable-dataset",
            "the message names it: a lambda, a local function or class, a lock, an open file, a generator, a module",
        ),
        ("spawn-without-main-guard", "it says “Can't get attribute … on __main__”: the class is in a notebook or -c"),
    ),
    ('python -c "import pickle, train; pickle.dumps(train.dataset)"', "unstuck run train.py"),
)

NO_SCRIPT = Message(
    "no-script-to-import",
    "FileNotFoundError: [Errno 2] No such file or directory: '…/<stdin>'",
    says(r"<stdin>'?\n"),
    "A spawned worker imports the script it was started from, and there is none: it came from standard input. "
    "The main process then only reports that workers exited.",
    (("uncaught-exception", "the path ends in <stdin>; from a file, with a main guard, the same code starts"),),
    ("unstuck run train.py",),
)

DAEMONIC = Message(
    "daemonic-children",
    "AssertionError: daemonic processes are not allowed to have children",
    says(r"daemonic processes are not allowed to have children"),
    "A worker of a DataLoader tried to start processes of its own: a DataLoader with workers or a Pool inside the "
    "dataset. Workers are daemons, and daemons may not.",
    (("sample-raises", "the traceback passes through your `__getitem__`; num_workers=0 inside, or outside, ends it"),),
    ("unstuck run train.py",),
)

CUDA_IN_FORK = Message(
    "cuda-in-forked-worker",
    "Cannot re-initialize CUDA in forked subprocess · CUDA error: initialization error",
    says(
        r"cannot re-initialize cuda in forked subprocess",
        r"cuda error: initialization error",
    ),
    "The main process had used CUDA before it forked a worker, and CUDA cannot be used in such a child. "
    "The dataset, a transform or collate_fn touches a CUDA tensor there.",
    (
        ("sample-raises", "the last frame of yours is in the dataset or collate_fn: keep its tensors on the CPU"),
        ("uncaught-exception", "it comes from worker_init_fn, or from a process you start yourself: use spawn"),
    ),
    ('grep -rn "cuda\\|device" dataset.py', "unstuck run train.py"),
)

FORK_WITH_THREADS = Message(
    "fork-with-threads",
    "This process is multi-threaded, use of fork() may lead to deadlocks in the child",
    says(r"use of fork(?:pty)?\(\) may lead to deadlocks"),
    "Python 3.12 and later warn when a process with threads forks: a lock that a thread held at that moment stays "
    "locked in the child forever. It is a risk; nothing is wrong until a worker hangs.",
    (("lock-lost-in-fork", "the training hangs, and a worker waits for a lock that none of its threads holds"),),
    ("unstuck run train.py",),
)

_ANY_DEATH = (
    ("out-of-memory-kill", "`dmesg` or memory.events counts an OOM kill at that minute"),
    ("shared-memory-full", "“Unexpected bus error encountered in worker” stands above, and /dev/shm is full"),
    ("native-crash", "“Unexpected segmentation fault” stands above, or `dmesg` has a segfault line for the pid"),
    ("too-many-open-files", "“Too many open files” stands above, from the worker's own thread"),
    ("spawn-without-main-guard", "“bootstrapping phase” stands above, and it fails before the first batch"),
    ("ended-from-outside", "nothing stands above and nothing was counted: something ended the worker from outside"),
)

WORKER_BUS_ERROR = Message(
    "worker-bus-error",
    "DataLoader worker (pid …) is killed by signal: Bus error",
    says(r"is killed by signal: bus error", r"unexpected bus error encountered in worker"),
    "A worker touched mapped memory that has no space or no file behind it any more. Torch always blames shared "
    "memory, but new versions report a full /dev/shm in other words, and a memory-mapped file that shrank ends so too.",
    (
        ("shared-memory-full", "`df -h /dev/shm` shows it full while the training runs"),
        (
            "native-crash",
            "/dev/shm has space: a mapped file (np.memmap, Arrow, LMDB) was truncated or its disk failed",
        ),
        ("disk-full", "/dev/shm has space, and the mapped file is being written to a full disk"),
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
    "Something sent the worker SIGKILL, which no program can catch or explain. "
    "The kernel does so when memory runs out, and picks the process that uses the most.",
    (
        ("out-of-memory-kill", "`dmesg` or memory.events counts an OOM kill at that minute"),
        (
            "dataset-copied-to-workers",
            "the same, and each worker's memory grows while it reads: fewer workers last longer",
        ),
        ("ended-from-outside", "no OOM kill was counted: a person, a scheduler or a container did it"),
    ),
    ("dmesg -T | grep -i oom", "cat /sys/fs/cgroup/memory.events", "unstuck run train.py"),
)

WORKER_STOPPED = Message(
    "worker-stopped",
    "DataLoader worker (pid …) is killed by signal: Terminated",
    says(r"is killed by signal: (?:terminated|hangup|interrupt|quit|user defined|cpu time)"),
    "A signal asked the worker to end; it did not crash. "
    "The signal went to the worker alone, or reached it before the main process.",
    (
        ("ended-from-outside", "the scheduler's log, or a person, ended the job or a process group at that time"),
        ("uncaught-exception", "your own code terminates children (psutil, multiprocessing) and hits the worker"),
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
    "A worker is gone and torch does not know why: it missed the batch before it noticed the death. "
    "The same death can print “killed by signal” next time, so look above for what the worker itself wrote.",
    _ANY_DEATH,
    ("unstuck run train.py", 'dmesg -T | grep -i "oom\\|segfault"', "df -h /dev/shm"),
)

BATCH_LOST = Message(
    "batch-lost",
    "ConnectionResetError, ConnectionRefusedError, EOFError or FileNotFoundError in rebuild_storage_fd",
    says(r"in rebuild_storage_fd"),
    "A batch was announced, but the worker that should hand over its memory was gone or failed. "
    "It is the third wording torch has for a dead worker, and says nothing about how it died.",
    _ANY_DEATH,
    ("unstuck run train.py", 'dmesg -T | grep -i "oom\\|segfault"', "ulimit -n"),
)

BATCH_NOT_SENT = Message(
    "batch-not-sent",
    "Traceback … queues.py, in _feed: PicklingError",
    says(r"queues\.py\", line \d+, in _feed"),
    "A worker made a batch and could not send it; multiprocessing prints that and drops the batch. "
    "The DataLoader waits for it forever: the training hangs after this message.",
    (
        ("waits-for-nobody", "the training hangs after it: the sample contains something that cannot be pickled"),
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
    "No batch came within the DataLoader's `timeout`, and all workers were alive. "
    "The message cannot say which worker or sample; `unstuck run` without a timeout shows it.",
    (
        ("sample-spins", "a worker uses a whole core (`top`), on one sample"),
        ("waits-on-io", "a worker sleeps in state D, or in a read of a network file"),
        ("file-lock-held", "a worker sleeps in flock or fcntl (`/proc/PID/wchan`, /proc/locks)"),
        ("lock-lost-in-fork", "a worker sleeps in a futex from the first batch on; num_workers=0 works"),
        ("starved-for-data", "nothing hangs: samples are slow, and the timeout is short for them"),
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
