"""pipe-full: a child cannot write any more because nobody reads its pipe.

What it sees
    A child is blocked writing to a pipe. The only process that has the other end open is its parent, and that one
    does not read: it waits for the child to end, or is itself blocked writing to the child.

Why it matters
    A pipe holds 64 KiB. Once it is full the writer waits for a reader, and the reader waits for the writer.

Evidence
    Both ends: which process is blocked writing which descriptor, who holds the reading end, and both lines.

Fix
    Read while you wait (`communicate()`), or send the output to DEVNULL or a file.

When it is wrong
    Only said when both sides were found unscheduled in two looks: then it cannot dissolve.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Process, Where
from unstuck.rules.hang.standstill import Standstill, process_of, standstills, user_frame
from unstuck.rules.hang.waiting import feeds_queue
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}


def decide(case: Case) -> Iterable[Finding]:
    for still in standstills(case):
        pair = full_pipe(still)
        if pair is None or not still.certain:
            continue
        writer, reader = pair
        frame = user_frame(reader) or user_frame(still.trail[0])
        stream = _stream(writer)
        yield RULE.finding(
            severity="error",
            confidence=still.confidence,
            title=f"{who(writer)} is stuck writing to a full pipe that {who(reader)} does not read",
            evidence=(
                f"{who(writer)} has been blocked writing its {stream} for {still.lasting}: the pipe is full",
                f"only {who(reader)} has the reading end open, and it {_doing(reader)}",
                "each waits for the other: two looks found neither scheduled"
                if still.proven
                else "neither moved meanwhile",
            ),
            where=still.where(frame, reader),
            fix=Fix(
                f"Read the child's {stream} while it runs (communicate(), or a thread), or give it "
                "subprocess.DEVNULL or a file instead of PIPE."
            ),
            seen_by="kernel",
            also=_also(still, writer),
        )


def full_pipe(still: Standstill) -> tuple[Process, Process] | None:
    """The writer at the full pipe and its non-reading reader, where both are on the trail or at its end."""
    for writer in reversed(still.trail):
        for thread in writer.threads:
            wait = thread.wait
            if wait is None or wait.kind != "pipe-write" or feeds_queue(thread):
                continue
            readers = [p for pid in wait.others if (p := process_of(still.look, pid))]
            if len(readers) == 1 and _waits_on(readers[0], writer) and readers[0].pid == writer.ppid:
                return writer, readers[0]
    return None


def _waits_on(reader: Process, writer: Process) -> bool:
    """The reader's own wait is for the writer: its end, or its reading of another pipe."""
    return any(
        t.wait is not None and t.wait.kind in ("child", "pipe-write", "pipe-read") and writer.pid in t.wait.others
        for t in reader.threads
    )


def _stream(writer: Process) -> str:
    wait = next((t.wait for t in writer.threads if t.wait and t.wait.kind == "pipe-write"), None)
    return _STREAMS.get(wait.fd if wait and wait.fd is not None else -1, "pipe")


def _doing(reader: Process) -> str:
    thread = reader.main_thread
    wait = thread.wait if thread else None
    at = place(user_frame(reader))
    if wait is not None and wait.kind == "child":
        return f"waits at {at} for it to end"
    if wait is not None and wait.kind == "pipe-write":
        return f"is itself blocked writing to it at {at}"
    return f"waits at {at}"


def _also(still: Standstill, writer: Process) -> tuple[Where, ...]:
    frame = user_frame(writer)
    return (still.where(frame, writer),) if frame else ()


RULE = Rule("pipe-full", "hang", decide, disproved_by_end=True)
