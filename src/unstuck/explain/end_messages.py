"""Messages about how a process ended, and about ranks that lost each other."""

from __future__ import annotations

from unstuck.explain.message import Message, says, shell_says

BUS_ERROR = Message(
    "bus-error",
    "Bus error (core dumped)",
    (
        *shell_says("bus error"),
        *says(r"fatal python error: bus error", r"terminated (?:by|with) signal sigbus", r"signal 7 \(sigbus\)"),
    ),
    "The process touched mapped memory that has no space or no file behind it any more. "
    "Three things do that: a full /dev/shm, a mapped file that became shorter, a mapped file written on a full disk.",
    (
        ("shared-memory-full", "`df -h /dev/shm` shows it full"),
        ("disk-full", "np.memmap or another mapping is written to, and `df` shows no space there"),
        ("native-crash", "there is space in both: a mapped data file was truncated or replaced, or its disk failed"),
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
    "faulthandler can still tell where: it writes the Python line of every thread at that moment.",
    (
        (
            "native-crash",
            "faulthandler shows the same line each time; “Illegal instruction”: built for another processor",
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
    "Something sent SIGKILL, which no program can catch or explain. "
    "The kernel does so when memory runs out; a scheduler, a container and a person can, too.",
    (
        ("out-of-memory-kill", "`dmesg` or memory.events counts an OOM kill at that minute"),
        ("memory-leak-in-loop", "the same, and memory had risen with every step"),
        ("ended-from-outside", "no OOM kill was counted: a scheduler, a container or a person did it"),
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
    "A signal asked the training to end, and it did. Terminated comes from a scheduler, a shutdown or a person; "
    "Hangup means that its terminal or ssh connection was closed.",
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
    "Somebody pressed Ctrl-C. If that was because the training hung, the traceback shows where the main process "
    "waited, but not why: most often it waits for a worker.",
    (
        ("sample-spins", "the traceback ends in _try_get_data, and a worker uses a whole core"),
        ("waits-on-io", "the same, and no worker uses any"),
        ("waits-for-nobody", "it ends in a queue, an event or a join of your own"),
        ("waits-on-device", "it ends in .item(), .cpu() or synchronize"),
        ("waits-on-rank", "it ends in a collective, or in backward of a DistributedDataParallel model"),
    ),
    ("unstuck run train.py   # and press Ctrl-C again when it hangs",),
)

TRACEBACK = Message(
    "python-traceback",
    "Traceback (most recent call last)",
    says(r"traceback \(most recent call last\)"),
    "Python code raised an exception that nothing caught; its last line says what, the last frame in a file of yours "
    "says where. unstuck knows nothing more about this message.",
    (
        ("uncaught-exception", "it fails whatever the sample"),
        ("sample-raises", "it fails at one sample: in another order of the data it comes at another step"),
    ),
    ("unstuck run train.py",),
    last_resort=True,
)

MISMATCH = Message(
    "collectives-mismatch",
    "Is there a distributed collective mismatch in your code? · params[…] appears not to match sizes",
    says(
        r"is there a distributed collective mismatch",
        r"received data size doesn't match expected size",
        r"appears not to match sizes of the same param in process",
        r"detected mismatch between collectives on ranks",
    ),
    "Two ranks joined a collective with different sizes, a different call or a different model. "
    "The ranks that only say “Connection reset” are its victims.",
    (
        ("collectives-differ", "the ranks are at different lines, or have different shapes"),
        ("uneven-batches", "the sizes are those of batches: a last batch smaller on one rank"),
    ),
    ("unstuck run -- torchrun --nproc-per-node 2 train.py", "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun … train.py"),
)

UNUSED = Message(
    "reduction-not-finished",
    "Expected to have finished reduction in the prior iteration before starting a new one",
    says(r"expected to have finished reduction in the prior iteration"),
    "DistributedDataParallel waits for the gradient of every parameter, and some got none in the last step. "
    "“Parameter indices which did not receive grad” counts them in the order of model.parameters().",
    (
        ("unused-parameters", "the same indices each time: a layer or branch that forward does not use"),
        ("graph-cut", "nearly all indices: the loss is not made from what forward of the wrapped model returned"),
    ),
    ("TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun … train.py", "unstuck run -- torchrun --nproc-per-node 2 train.py"),
)

COLLECTIVE_TIMEOUT = Message(
    "collective-timeout",
    "Watchdog caught collective operation timeout · Timed out waiting …ms for recv operation to complete",
    says(
        r"watchdog caught collective operation timeout",
        r"timed out waiting \d+ms for (?:recv|send) operation",
        r"failed to pass monitoredbarrier",
        r"collective operation timeout",
    ),
    "This rank waited in a collective until the time limit: another rank did not join, or its own GPU never got "
    "that far. The rank that prints it is the one that waited; look first at the rank that is silent.",
    (
        (
            "rank-skips-collective",
            "one rank is alive and is elsewhere: an `if rank == 0`, a stuck sample, a checkpoint",
        ),
        ("collectives-differ", "all ranks time out, each in another call (OpType, or the line in the traceback)"),
        ("uneven-batches", "it happens at the end of an epoch, and sequence numbers differ by the batches missing"),
        ("rank-exited-early", "one rank is gone: its own traceback, or no process"),
        ("waits-on-device", "all ranks are in the same call: a kernel queued before it does not end"),
        ("straggler-rank", "with a longer limit it goes on"),
    ),
    ("unstuck run -- torchrun --nproc-per-node 2 train.py", "TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun … train.py"),
)

PEER_GONE = Message(
    "peer-gone",
    "Connection closed by peer · caused by a remote worker crashing · ncclRemoteError",
    says(
        r"connection closed by peer \[",
        r"caused by a remote worker (?:crashing|hanging)",
        r"ncclremoteerror",
        r"remote process exited or there was a network error",
    ),
    "Another rank ended while this one was talking to it. This rank is a victim: look for the first traceback of "
    "another one, and if there is none, that rank ended without an error.",
    (
        ("rank-exited-early", "the other rank has a traceback or an exit code of its own"),
        ("uneven-batches", "the other rank ended normally, at the end of an epoch: it had fewer batches"),
        ("out-of-memory-kill", "the launcher reports exitcode −9 for it"),
    ),
    ("unstuck run -- torchrun --nproc-per-node 2 train.py", "dmesg -T | grep -i oom"),
)

WORLD = Message(
    "rendezvous-failed",
    "Timed out … waiting for clients. 1/2 clients joined · The client socket has timed out · EADDRINUSE",
    says(
        r"waiting for clients\. \d+/\d+ clients joined",
        r"the client socket has (?:timed out|failed to connect)",
        r"the server socket has failed to listen",
        r"address already in use",
        r"environment variable (?:rank|world_size|master_addr|master_port) expected",
        r"duplicate gpu detected",
        r"rendezvoustimeouterror",
    ),
    "The ranks did not find each other, so nothing was trained yet. "
    "The first line that names a host, a port or a variable says what each of them tried.",
    (
        ("world-never-formed", "some ranks wait at init_process_group: address, port, number of ranks or a firewall"),
        ("rank-exited-early", "a rank died on its way there: its traceback stands above"),
    ),
    (
        'env | grep "RANK\\|WORLD\\|MASTER"',
        "ss -ltnp | grep PORT",
        "unstuck run -- torchrun --nproc-per-node 2 train.py",
    ),
)

CHILD_FAILED = Message(
    "child-failed",
    "torch.distributed.elastic… ChildFailedError · Root Cause (first observed failure)",
    says(
        r"childfailederror",
        r"root cause \(first observed failure\)",
        r"processraisedexception",
        r"processexitedexception",
    ),
    "The launcher saw a rank fail and stopped the others: their SIGTERM comes from the launcher. "
    "“Root Cause (first observed failure)” has the rank that counts; its exitcode says what happened to it.",
    (
        ("uncaught-exception", "exitcode 1: the traceback of that rank stands above (lines with [rank…])"),
        ("out-of-memory-kill", "exitcode −9 (SIGKILL), and an OOM kill was counted"),
        ("native-crash", "exitcode −11 (SIGSEGV), −6 (SIGABRT), −7 (SIGBUS) or −8 (SIGFPE)"),
        ("ended-from-outside", "exitcode −9 without an OOM kill; or −15 or −1 for the root cause itself"),
    ),
    ("unstuck run -- torchrun --nproc-per-node 2 train.py", 'dmesg -T | grep -i "oom\\|segfault"'),
)
