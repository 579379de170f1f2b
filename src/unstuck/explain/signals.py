"""What a shell, a scheduler or Python prints when a signal ended the training."""

from __future__ import annotations

from unstuck.explain.message import Message, says, shell_says

BUS_ERROR = Message(
    "bus-error",
    "Bus error (core dumped)",
    (
        *shell_says("bus error"),
        *says(r"fatal python error: bus error", r"terminated (?:by|with) signal sigbus", r"signal 7 \(sigbus\)"),
    ),
    "The process touched mapped memory behind which there is no room or no file any more. "
    "Three things end so: a full /dev/shm, a mapped file that became shorter, a mapped file written on a full disk.",
    (
        ("shared-memory-full", "`df -h /dev/shm` shows it full"),
        ("disk-full", "np.memmap or another mapping is written to, and `df` shows no room there"),
        ("native-crash", "there is room in both: a mapped data file was truncated or replaced, or its disk failed"),
    ),
    ("df -h /dev/shm .", "ls -l DATA", "unstuck run train.py"),
)

CRASHED = Message(
    "segmentation-fault",
    "Segmentation fault (core dumped) · Aborted · Fatal Python error",
    (
        *shell_says("segmentation fault", "aborted", "abort", "floating point exception", "illegal instruction"),
        *says(
            r"fatal python error: ",
            r"terminate called after throwing an instance of",
            r"terminate called without an active exception",
            r"terminated (?:by|with) signal sig(?:segv|abrt|fpe|ill)",
            r"signal \d+ \(sig(?:segv|abrt|fpe|ill)\)",
        ),
    ),
    "Compiled code crashed, and Python had no chance to print a traceback. "
    "Where it was can be had: faulthandler writes the Python line of every thread at that moment.",
    (
        (
            "native-crash",
            "with faulthandler the same line each time; “Illegal instruction”: built for another processor",
        ),
        ("out-of-memory-kill", "“std::bad_alloc” stands above, or memory was at its limit"),
        ("uncaught-exception", "“terminate called” names a C++ exception: what() on the next line is the cause"),
    ),
    ("unstuck run train.py", "PYTHONFAULTHANDLER=1 python train.py", "dmesg -T | grep segfault"),
)

KILLED = Message(
    "killed",
    "Killed",
    (
        *shell_says("killed"),
        *says(
            r"terminated (?:by|with) signal sigkill",
            r"signal 9 \(sigkill\)",
            r"exited with code 137",
            r"exit code:? 137",
        ),
    ),
    "Somebody sent SIGKILL, which no program can catch or explain. "
    "The kernel does so when memory runs out; a scheduler, a container and a person can, too.",
    (
        ("out-of-memory-kill", "`dmesg` or memory.events counts an oom kill at that minute"),
        ("memory-leak-in-loop", "the same, and memory had risen with every step"),
        ("ended-from-outside", "no oom kill was counted: a scheduler, a container or a person did it"),
    ),
    ("dmesg -T | grep -i oom", "cat /sys/fs/cgroup/memory.events", "unstuck run train.py"),
)

ENDED = Message(
    "terminated",
    "Terminated · Hangup · CANCELLED … DUE TO TIME LIMIT",
    (
        *shell_says("terminated", "hangup", "cpu time limit exceeded", "quit"),
        *says(
            r"signalexception: process \d+ got signal: ",
            r"due to (?:time limit|preemption|node failure)",
            r"terminated (?:by|with) signal sig(?:term|hup)",
            r"received \w{1,20}\.?sig(?:term|hup) death signal",
        ),
    ),
    "The training was asked to end, and did. Terminated comes from a scheduler, a shutdown or a person; "
    "Hangup means that the terminal or ssh connection it was started from was closed.",
    (
        (
            "ended-from-outside",
            "the training was in the middle of a step; the scheduler's log has the reason and the time",
        ),
    ),
    (
        "sacct -j JOB --format=State,ExitCode,Elapsed,Timelimit",
        'journalctl --since -1h | grep -i "shutdown\\|terminat"',
        "nohup unstuck run train.py &",
    ),
)

INTERRUPTED = Message(
    "keyboard-interrupt",
    "KeyboardInterrupt",
    says(r"\nkeyboardinterrupt", r"\n\[rank\d+\]: keyboardinterrupt"),
    "Somebody pressed Ctrl-C. If that was because it stood still, the traceback shows where the main process waited, "
    "and not why: most often it waits for a worker.",
    (
        ("sample-spins", "the traceback ends in _try_get_data, and a worker uses a whole core"),
        ("waits-on-io", "the same, and no worker uses any"),
        ("waits-for-nobody", "it ends in a queue, an event or a join of your own"),
        ("waits-on-device", "it ends in .item(), .cpu() or synchronize"),
        ("waits-on-rank", "it ends in a collective, or in backward of a DistributedDataParallel model"),
    ),
    ("unstuck run train.py   # and press Ctrl-C again when it stands still",),
)

TRACEBACK = Message(
    "python-traceback",
    "Traceback (most recent call last)",
    says(r"traceback \(most recent call last\)"),
    "Python code raised an exception that nobody caught; its last line says what, the last frame in a file of yours "
    "says where. unstuck knows no more about this one from its words.",
    (
        ("uncaught-exception", "it fails whatever the sample"),
        ("sample-raises", "it fails at one sample: another order of the data moves the step at which it comes"),
    ),
    ("unstuck run train.py",),
    last_resort=True,
)
