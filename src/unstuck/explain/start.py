"""Messages about the start of workers: what cannot be sent to them, and scripts that start themselves again."""

from __future__ import annotations

from unstuck.explain.message import Message, says

BOOTSTRAPPING = Message(
    "bootstrapping-phase",
    "An attempt has been made to start a new process before the current process has finished its bootstrapping phase",
    says(r"before the current process has finished its bootstrapping phase", r"freeze_support\(\)"),
    "Workers are started by spawn or forkserver, and each imports your script from the top: there it meets the line "
    "that starts workers, and would start workers itself. The main process then only says that workers exited.",
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
    "The main process then only says that workers exited.",
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
    "locked in the child for ever. It is a risk, and no fault until a worker stands still.",
    (("lock-lost-in-fork", "the training stands still, and a worker waits for a lock that no thread of it holds"),),
    ("unstuck run train.py",),
)
