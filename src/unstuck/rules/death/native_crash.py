"""native-crash: compiled code crashed below a line of Python.

What it sees
    The training, or a worker of it, died of SIGSEGV, SIGABRT, SIGFPE, SIGILL or SIGBUS.

Why it matters
    The kernel ends a process that touches memory it does not have, divides by zero in an instruction, or gives up
    by itself. No exception can be caught.

Evidence
    The signal, the Python line of the thread it happened in (written by faulthandler in the dying process), and
    the sample that was in work.

Fix
    Look at what that line calls and at that sample's data; try the call alone on it; update the library it lies in.

When it is wrong
    The line is where Python entered the compiled code; memory may have been spoilt earlier, by something else.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Crash, Finding, Fix, Flight, Frame
from unstuck.rules.death.died import FATAL, Death, WorkerEnd, death, signal_name
from unstuck.rules.death.errors import spot
from unstuck.rules.death.shared_memory_full import shortage
from unstuck.rules.rule import Rule

MEANS = {
    "SIGSEGV": "it touched memory that it does not have",
    "SIGBUS": "it touched memory whose file has no such part: a mapped file that was cut short, most likely",
    "SIGABRT": "it gave up by itself: a failed check or an uncaught C++ exception",
    "SIGFPE": "an instruction failed: most often an integer division by zero",
    "SIGILL": "it ran an instruction that this processor does not have",
}


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None or shortage(end) is not None:
        return
    for worker, name, flight in crashes(end):
        crash = flight.crash if flight is not None else None
        frame = crashed_at(crash)
        who = worker.who if worker is not None else f"the training process (pid {end.pid})"
        on = _sample(flight)
        yield RULE.finding(
            severity="error",
            confidence=0.97 if frame is not None else 0.9,
            title=f"{who} crashed with {name}" + (f" at {spot(frame)}" if frame else "") + (f", {on}" if on else ""),
            evidence=(
                f"{who} died of {name}: {MEANS[name]}",
                *_stack(crash, frame),
                *([f"it was {on}" + _opened(flight)] if on else []),
                end.progress(),
            ),
            where=end.where(frame, None, worker),
            fix=Fix(_fix(crash, frame, on)),
            seen_by="faulthandler" if frame is not None else "exit",
        )
        return


def crashes(end: Death) -> list[tuple[WorkerEnd | None, str, Flight | None]]:
    """Who died of a fatal signal: main itself, or workers."""
    found: list[tuple[WorkerEnd | None, str, Flight | None]] = []
    flight = end.flight
    if end.exit.signal is not None and signal_name(end.exit.signal) in FATAL:
        found.append((None, signal_name(end.exit.signal), flight))
    elif flight is not None and flight.crash is not None and end.died is None:  # its exit is not known, or a shell's
        found.append((None, flight.crash.signal, flight))
    return found + [(w, w.signal, w.flight) for w in end.fallen if w.signal in FATAL]


def crashed_at(crash: Crash | None) -> Frame | None:
    """The innermost line of the user's in the crashing thread; without one, the innermost line at all."""
    frames = crash.thread.frames if crash is not None and crash.thread is not None else ()
    if not frames and crash is not None and crash.threads:
        frames = crash.threads[0].frames
    return next((f for f in frames if f.user), frames[0] if frames else None)


def _stack(crash: Crash | None, frame: Frame | None) -> list[str]:
    if crash is None:
        return ["it left no stack"]
    if crash.thread is None:
        return ["the thread it happened in ran no Python; the line is that of the main thread"]
    inner = crash.thread.frames[0]
    if frame is not None and inner != frame:
        return [f"its thread was in {spot(inner)}, called from {spot(frame)}"]
    return [f"its thread was at {spot(inner)}" + (f": `{inner.code}`" if inner.code else "")]


def _sample(flight: Flight | None) -> str:
    if flight is None or not flight.fetching:
        return ""
    if flight.collating:
        return "collating a batch"
    if flight.sample is not None:
        return f"on sample {flight.sample}"
    return f"on sample {flight.sample_key}" if flight.sample_key else ""


def _opened(flight: Flight | None) -> str:
    return f"; the last file it opened is {flight.attempt_target}" if flight and flight.attempts else ""


def _fix(crash: Crash | None, frame: Frame | None, on: str) -> str:
    data = f" with the data of {on.removeprefix('on ')}" if on.startswith("on ") else ""
    if crash is not None and crash.signal == "SIGBUS":
        return (
            "Check that the file behind the memory map is as long as expected before reading it, and that nobody "
            "shortens it while it is mapped" + (f"; look at the data of {on.removeprefix('on ')}." if data else ".")
        )
    call = f"the call at {spot(frame)}" if frame is not None else "what the process does"
    return f"Run {call} alone{data}; then update, or report to, the library whose compiled code it enters."


RULE = Rule("native-crash", "death", decide)
