"""spawn-without-main-guard: each worker runs the script again, and dies of it.

What it sees
    A process that was started by `spawn` or `forkserver` dies while it imports the script, at a line of the
    script's top level that is not behind `if __name__ == "__main__":`.

Why it matters
    Such a process begins with an empty interpreter and imports the script to know its classes. Everything at the
    top level runs again there: it starts workers of its own, or sets the start method a second time, which is an
    error. Main only sees that its workers are gone; their own error is in none of its lines.

Evidence
    The worker's own exception, and the line of the script's top level that led to it in the worker.

Fix
    Put what starts the training behind `if __name__ == "__main__":`; leave classes, functions and imports outside.

When it is wrong
    Hardly: the exception was raised in the worker, below the import of the script.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Frame, Where
from unstuck.recorder.records.deaths import Died, Raised
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import frames_of, inner_frame, said, spot
from unstuck.rules.rule import Rule

IMPORTING = ("_fixup_main_from_path", "_fixup_main_from_name")
STARTING = ("multiprocessing/spawn.py", "multiprocessing/context.py", "multiprocessing/process.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    deaths = importing(end)
    if not deaths:
        return
    died = deaths[0]
    line, inner = top_level(died.raised), inner_frame(died.raised)
    again = inner is not None and inner.file.endswith(STARTING)
    numbers = _numbers(end)
    who = f"worker {numbers[died.pid]} (pid {died.pid})" if died.pid in numbers else f"process {died.pid}"
    more = f"; {len(deaths)} processes died of it" if len(deaths) > 1 else ""
    main = end.died
    yield RULE.finding(
        severity="error",
        confidence=0.98 if again else 0.85,
        title=f'{spot(line)} runs again in every worker: it is not behind `if __name__ == "__main__":`',
        evidence=(
            f"{who} died of `{_shown(died.raised)}`, raised at {spot(inner)}{more}",
            f"it happened while the worker imported the script, which ran {spot(line)} once more",
            *([f"main itself only said `{said(main.raised)}`"] if main is not None else []),
            end.progress(),
        ),
        where=Where(line.file, line.line, line.function, pid=died.pid, worker=numbers.get(died.pid), step=end.step)
        if line
        else end.where(None, died),
        fix=Fix(
            'Put this line, and whatever else starts the training, behind `if __name__ == "__main__":`; classes, '
            "functions and imports stay at the top level, for the workers need them."
        ),
        seen_by="exit",
    )


def importing(end: Death) -> list[Died]:
    """Of processes that died while importing the script, the earliest first."""
    others = [died for died in end.case.deaths if died.pid != end.pid and died.raised.type not in _MISSING]
    return [died for died in others if any(function in IMPORTING for _, _, function, _ in died.raised.frames)]


def top_level(raised: Raised) -> Frame | None:
    """The line of the script itself: the outermost of the user's."""
    users = [frame for frame in frames_of(raised.frames) if frame.user]
    return users[-1] if users else None


def _numbers(end: Death) -> dict[int, int]:
    started = [each.pids for each in end.case.workers_started if each.pid == end.pid]
    numbers = {pid: number for pids in started for number, pid in enumerate(pids)}
    exits = end.batch.workers if end.batch is not None else []
    return {**numbers, **{exit_.pid: exit_.worker for exit_ in exits}}


def _shown(raised: Raised) -> str:
    """The message of multiprocessing's own check begins with an empty line and goes on for fifteen."""
    return " ".join(said(raised).split())


_MISSING = ("ImportError", "ModuleNotFoundError", "SystemExit")

RULE = Rule("spawn-without-main-guard", "death", decide)
