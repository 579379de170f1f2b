"""spawn-without-main-guard: each worker runs the script again, and dies of it.

What it sees
    A process that was started by `spawn` or `forkserver` dies while it imports the script, at a line of the
    script's top level that is not behind `if __name__ == "__main__":`.

Why training stops
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
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import Error, error_of, spot
from unstuck.rules.rule import Rule

IMPORTING = ("_fixup_main_from_path", "_fixup_main_from_name")
STARTING = ("multiprocessing/spawn.py", "multiprocessing/context.py", "multiprocessing/process.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    errors = importing(end)
    if not errors:
        return
    error = errors[0]
    line = top_level(error)
    again = error.passes(*STARTING) and error.frames[0].file.endswith(STARTING)
    numbers = _numbers(end)
    who = f"worker {numbers[error.pid]} (pid {error.pid})" if error.pid in numbers else f"process {error.pid}"
    more = f"; {len(errors)} processes died of it" if len(errors) > 1 else ""
    main = end.error
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.98 if again else 0.85,
        title=f'{spot(line)} runs again in every worker: it is not behind `if __name__ == "__main__":`',
        evidence=(
            f"{who} died of `{_shown(error)}`, raised at {spot(error.frames[0] if error.frames else None)}{more}",
            f"it happened while the worker imported the script, which ran {spot(line)} once more",
            *([f"main itself only said `{main.said}`"] if main is not None else []),
            end.progress(),
        ),
        where=Where(line.file, line.line, line.function, pid=error.pid, worker=numbers.get(error.pid), step=end.step)
        if line
        else end.where(None, error),
        fix=Fix(
            'Put this line, and whatever else starts the training, behind `if __name__ == "__main__":`; classes, '
            "functions and imports stay at the top level, for the workers need them."
        ),
        seen_by="exit",
    )


def importing(end: Death) -> list[Error]:
    """Errors of processes that died while importing the script, the earliest first."""
    found = [error_of(f) for f in end.case.facts if f.kind == "exception" and f.pid != end.pid]
    return [e for e in found if any(f.function in IMPORTING for f in e.frames) and e.type not in _MISSING]


def top_level(error: Error) -> Frame | None:
    """The line of the script itself: the outermost of the user's."""
    users = [frame for frame in error.frames if frame.user]
    return users[-1] if users else None


def _numbers(end: Death) -> dict[int, int]:
    told = [f.data.get("pids") or () for f in end.case.facts if f.kind == "workers" and f.pid == end.pid]
    numbers = {pid: number for pids in told for number, pid in enumerate(pids)}
    for each in (end.batch.data.get("workers") or ()) if end.batch is not None else ():
        numbers[each["pid"]] = each["worker"]
    return numbers


def _shown(error: Error) -> str:
    """The message of multiprocessing's own check begins with an empty line and goes on for fifteen."""
    return " ".join(error.said.split())


_MISSING = ("ImportError", "ModuleNotFoundError", "SystemExit")

RULE = Rule("spawn-without-main-guard", "death", decide)
