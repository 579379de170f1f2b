"""spawn-without-main-guard: each worker runs the whole script again, and dies of it.

What it sees
    A process started by `spawn` or `forkserver` dies while it imports the script, at a line of the script's top level
    that is not behind `if __name__ == "__main__":`.

Why it matters
    Such a process starts with an empty interpreter and imports the script to get its classes. Everything at the top
    level runs again there: it starts workers of its own, or sets the start method a second time, which is an error.
    The run dies before its first step, and main only reports that its workers are gone.

Evidence
    The worker's own exception, and the line of the script's top level that led to it in the worker.

Fix
    Put what starts the training behind `if __name__ == "__main__":`; leave classes, functions and imports outside.

When it is wrong
    Hardly ever: the exception was raised in the worker, below the import of the script.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding
from unstuck.rules.death.post_mortem import at_line, death, exception_text, frames_of, innermost
from unstuck.rules.rule import Rule
from unstuck.rules.words import place, process_name, worker_number

IMPORTING = ("_fixup_main_from_path", "_fixup_main_from_name")
STARTING = ("multiprocessing/spawn.py", "multiprocessing/context.py", "multiprocessing/process.py")
ANOTHER_FAULT = ("ImportError", "ModuleNotFoundError", "SystemExit")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    if end is None:
        return
    others = (died for died in case.deaths if died.pid != end.pid and died.raised.type not in ANOTHER_FAULT)
    importing = [died for died in others if any(function in IMPORTING for _, _, function, _ in died.raised.frames)]
    if not importing:
        return
    died = importing[0]
    users = [frame for frame in frames_of(died.raised.frames) if frame.user]
    line, inner = users[-1] if users else None, innermost(died.raised)  # the outermost is the script itself
    starts_processes = inner is not None and inner.file.endswith(STARTING)
    text = " ".join(exception_text(died.raised).split())  # multiprocessing's message begins with an empty line
    more = f"; {len(importing)} processes died of it" if len(importing) > 1 else ""
    yield RULE.finding(
        severity="error",
        confidence=0.98 if starts_processes else 0.85,
        title=f'every worker runs {place(line)} again: it is not behind `if __name__ == "__main__":`',
        evidence=(
            f"{process_name(case, died.pid)} died of `{text}`, raised at {place(inner)}{more}",
            f"it happened while the worker imported the script, which ran {place(line)} once more",
            f"main itself only reported `{exception_text(end.died.raised)}`" if end.died is not None else "",
            end.progress(),
        ),
        where=replace(at_line(line), pid=died.pid, worker=worker_number(case, died.pid), step=end.step),
        fix='Put this line, and whatever else starts the training, behind `if __name__ == "__main__":`; classes, '
        "functions and imports stay at the top level, because the workers need them.",
        seen_by="exit",
    )


RULE = Rule("spawn-without-main-guard", "death", decide)
