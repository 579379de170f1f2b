"""pipe-full: a child cannot write any more because nobody reads its pipe.

What it sees
    A child is blocked writing to a pipe. The only process that has the other end open is its parent, and the parent
    does not read: it waits for the child to exit, or is itself blocked writing to the child.

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
from unstuck.rules.hang.blocked import blocked, full_pipe
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, who

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}


def decide(case: Case) -> Iterable[Finding]:
    for still in blocked(case, "pipe"):
        pair = full_pipe(still)
        if pair is None:
            continue
        writer, reader = pair
        waits = [t.wait for t in writer.threads if t.wait and t.wait.kind == "pipe-write"]
        stream = _STREAMS.get(waits[0].fd if waits[0].fd is not None else -1, "pipe")
        yield still.finding(
            RULE,
            title=f"{who(writer)} is stuck writing to a full pipe that {who(reader)} does not read",
            evidence=(
                f"{who(writer)} has been blocked writing to its {stream} for {still.lasting}: the pipe is full",
                f"only {who(reader)} has the reading end open, and it {_doing(reader)}",
                "deadlock: neither ran between two snapshots" if still.proven else "neither moved meanwhile",
            ),
            where=still.where(reader.user_frame or still.trail[0].user_frame, reader),
            fix=f"Read the child's {stream} while it runs (communicate(), or a thread), or give it "
            "subprocess.DEVNULL or a file instead of PIPE.",
            also=still.places(writer.user_frame, writer),
        )


def _doing(reader: Process) -> str:
    wait = reader.main_thread.wait if reader.main_thread else None
    at = place(reader.user_frame)
    if wait is not None and wait.kind == "child":
        return f"waits at {at} for it to exit"
    if wait is not None and wait.kind == "pipe-write":
        return f"is itself blocked writing to it at {at}"
    return f"waits at {at}"


RULE = Rule("pipe-full", "hang", decide, disproved_by_end=True)
