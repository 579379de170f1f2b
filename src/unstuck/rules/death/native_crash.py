"""native-crash: compiled code crashed below a line of Python.

What it sees
    The training, one of its workers, or a process that the script started and that the training then missed, died of
    SIGSEGV, SIGABRT, SIGFPE, SIGILL or SIGBUS.

Why it matters
    The kernel ends a process that accesses memory it does not own, divides by zero in an instruction, or aborts itself.
    No `try` can catch that, and no checkpoint is saved.

Evidence
    The signal, the Python line of the thread it happened in (written by faulthandler in the dying process), and the
    sample that was being fetched.

Fix
    Look at what that line calls and at the data of that sample; try the call alone on it; update the library behind it.

When it is wrong
    The line is where Python entered the compiled code; something else may have corrupted the memory earlier.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Crash, Finding, Flight, Frame
from unstuck.rules import scans
from unstuck.rules.death.post_mortem import Death, WorkerEnd, crash_frames, death
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, process_name
from unstuck.text import signal_name

MEANS = {
    "SIGSEGV": "it accessed memory that it does not own",
    "SIGBUS": "it accessed mapped memory whose file has no such part: most likely a file that was truncated",
    "SIGABRT": "it aborted itself: a failed check or an uncaught C++ exception",
    "SIGFPE": "an instruction failed: most often an integer division by zero",
    "SIGILL": "it ran an instruction that this processor does not have",
}


def decide(case: Case) -> Iterable[Finding]:
    yield from scans.killing(RULE, case, by_signal=True)
    end = death(case)
    crashed = _crashed(end) if end is not None else None
    if end is None or crashed is None:
        return
    name, worker = crashed
    flight = worker.flight if worker is not None else end.flight
    crash = flight.crash if flight is not None else None
    frame, work = _crashed_at(crash, flight), _work(flight)
    who = worker.name if worker is not None else process_name(case, end.pid)
    yield RULE.finding(
        severity="error",
        confidence=0.97 if frame is not None else 0.9,
        title=f"{who} crashed with {name}"
        + (f" at {place(frame)}" if frame is not None else "")
        + (f", {work}" if work else ""),
        evidence=(
            f"{who} died of {name}: {MEANS[name]}",
            _stack(crash, frame),
            f"it was {work}{_opened(flight)}" if work else "",
            end.progress(),
        ),
        where=end.where(frame, None, worker),
        fix=_fix(name if crash is not None else "", frame, work),
        seen_by="faulthandler" if frame is not None else "exit",
    )


def _crashed(end: Death) -> tuple[str, WorkerEnd | None] | None:
    """The fatal signal, and the worker that died of it; None for that: main did."""
    exit_signal, flight = signal_name(end.exit.signal or 0), end.flight
    if exit_signal in MEANS:
        return exit_signal, None
    if flight is not None and flight.crash is not None and end.died is None:  # its exit is not known, or a shell's
        return flight.crash.signal, None
    return next(((worker.signal, worker) for worker in end.fallen if worker.signal in MEANS), None)


def _crashed_at(crash: Crash | None, flight: Flight | None) -> Frame | None:
    """The innermost line of the user's in the crashing thread; without one, the innermost line of all."""
    frames = crash_frames(flight)
    if not frames and crash is not None and crash.threads:
        frames = crash.threads[0].frames
    return next((frame for frame in frames if frame.user), frames[0] if frames else None)


def _stack(crash: Crash | None, frame: Frame | None) -> str:
    if crash is None:
        return "it left no stack"
    if crash.thread is None:
        return "the thread it happened in ran no Python; the line is that of the main thread"
    inner = crash.thread.frames[0]
    if frame is not None and inner != frame:
        return f"its thread was in {place(inner)}, called from {place(frame)}"
    return f"its thread was at {place(inner)}" + (f": `{inner.code}`" if inner.code else "")


def _work(flight: Flight | None) -> str:
    if flight is None or not flight.fetching:
        return ""
    if flight.collating:
        return "collating a batch"
    sample = flight.sample if flight.sample is not None else flight.sample_key
    return f"fetching sample {sample}" if sample != "" else ""


def _opened(flight: Flight | None) -> str:
    return f"; the last file it opened is {flight.attempt_target}" if flight and flight.attempts else ""


def _fix(name: str, frame: Frame | None, work: str) -> str:
    sample = work.removeprefix("fetching ") if work.startswith("fetching") else ""
    if name == "SIGBUS":
        return (
            "Check that the file behind the memory map is as long as expected before reading it, and that nothing "
            "truncates it while it is mapped" + (f"; look at the data of {sample}." if sample else ".")
        )
    call = f"the call at {place(frame)}" if frame is not None else "what the process does"
    data = f" with the data of {sample}" if sample else ""
    return f"Run {call} alone{data}; then update, or report to, the library whose compiled code it enters."


RULE = Rule("native-crash", "death", decide)
