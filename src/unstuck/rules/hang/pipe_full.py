"""pipe-full: a process cannot write any more because nobody reads its pipe.

What it sees
    A thread is blocked writing to a pipe (or a `multiprocessing.Pipe`), and everybody who has the other end open
    waits for something else: a parent for its child to exit, two senders for each other, or the writer is the only
    one that could read.

Why it matters
    A pipe holds 64 KiB. Once it is full the writer waits for the reader while the reader waits for the writer, and
    the run hangs forever.

Evidence
    Both ends: which process is blocked writing to which descriptor, who has the reading end, and both lines.

Fix
    Read while you wait (`communicate()`), or send the output to DEVNULL or a file.

When it is wrong
    Reported only if neither side ran between two snapshots: then it cannot resolve itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Process
from unstuck.rules.hang.blocked import FullPipe, blocked, full_pipe
from unstuck.rules.hang.standstill import Standstill
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "pipe"):
        pipe = full_pipe(still)
        if pipe is not None:
            yield _own_pipe(still, pipe) if pipe.reader in (None, pipe.writer) else _finding(still, pipe, pipe.reader)


def _finding(still: Standstill, pipe: FullPipe, reader: Process) -> Finding:
    writer = pipe.writer
    frame = pipe.thread.user_frame
    at = f" at {place(frame)}" if frame else ""
    return still.finding(
        RULE,
        title=f"{who(writer)} is stuck writing to a full pipe that {who(reader)} does not read",
        evidence=(
            f"{who(writer)} has been blocked writing to its {_stream(pipe)}{at} for {still.lasting}: the pipe is full",
            f"only {who(reader)} has the reading end open, and it {_doing(reader)}",
            "deadlock: neither ran between two snapshots" if still.proven else "neither moved meanwhile",
        ),
        where=still.where(reader.user_frame or still.trail[0].user_frame, reader),
        fix=f"Read the other side's {_stream(pipe)} while it writes (communicate(), recv(), or a thread), or give it "
        "subprocess.DEVNULL or a file instead of a pipe.",
        also=still.places(frame, writer),
        chain=writer != still.process and reader != still.process,
    )


def _own_pipe(still: Standstill, pipe: FullPipe) -> Finding:
    """The writer itself is the only one that could read it, or nobody of this run is."""
    frame = pipe.thread.user_frame or still.frame
    own = pipe.reader is not None
    end = "only itself could read: no other process has the reading end" if own else "nobody of this run can read"
    return still.finding(
        RULE,
        title=f"{who(pipe.writer)} is stuck writing to a full pipe that "
        + ("only it could read" if own else "a program outside this run does not read"),
        evidence=(
            f"{who(pipe.writer)} has been blocked writing to its {_stream(pipe)} at {place(frame)} for "
            f"{still.lasting}: the pipe is full",
            f"it is a pipe that {end}",
        ),
        where=still.where(frame, pipe.writer),
        fix="Read the pipe in a thread while it is written to, or write to a file or io.StringIO instead."
        if own
        else "Let the program that gets this output read it, or send it to a file.",
    )


def _stream(pipe: FullPipe) -> str:
    fd = pipe.thread.wait.fd if pipe.thread.wait else None
    return _STREAMS.get(-1 if fd is None else fd, "pipe")


def _doing(reader: Process) -> str:
    wait = reader.main_thread.wait if reader.main_thread else None
    at = place(reader.user_frame)
    if wait is not None and wait.kind == "child":
        return f"waits at {at} for it to exit"
    if wait is not None and wait.kind == "pipe-write":
        return f"is itself blocked writing to it at {at}"
    return f"waits at {at}"


RULE = Rule("pipe-full", "hang", decide, disproved_by_end=True)
