"""unpicklable-dataset: something that a worker needs cannot be pickled.

What it sees
    The run dies while it starts a process by `spawn` or `forkserver`: the dataset, the collate function or another
    argument cannot be pickled.

Why it matters
    Such a process shares nothing with its parent. Everything it gets is pickled, and locks, open files, lambdas and
    functions inside functions cannot be: the run ends before its first batch.

Evidence
    The exception, the attribute that cannot be pickled and what it is, found in the dying process.

Fix
    Create the attribute in the worker, at first use (or in `worker_init_fn`), or define the function at the top level
    of a module.

When it is wrong
    If an object has its own way of pickling, the attribute may not be found; the exception still holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Where
from unstuck.recorder.records.deaths import Raised, Unpicklable
from unstuck.rules.death.post_mortem import death, exception_text, goes_through, user_line, with_causes
from unstuck.rules.rule import Rule
from unstuck.rules.words import place

STARTING = ("multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    died = end.died if end is not None else None
    error = next((raised for raised in with_causes(died.raised) if _pickling(raised)), None) if died else None
    if end is None or died is None or error is None:
        return
    culprit, line = died.pickling or Unpicklable(), user_line(error)
    named = f"`{culprit.path}` is {culprit.what}, which" if culprit.path else "something it needs"
    methods = [loader.start_method for loader in case.loaders if loader.pid == end.pid and loader.start_method]
    yield RULE.finding(
        severity="error",
        confidence=0.97 if culprit.path else 0.9,
        title=f"a worker could not be started: {named} cannot be pickled",
        evidence=(
            f"`{exception_text(error)}` while {place(line)} started a process",
            f"the worker needs `{culprit.path}`, which is {culprit.what}" if culprit.path else "",
            *error.notes[:2],
            f"the start method is {methods[-1]}; with fork nothing is pickled" if methods else "",
            end.progress(),
        ),
        where=end.where(line, died),
        fix=_fix(culprit),
        seen_by="exit",
        also=(Where(*culprit.site),) if culprit.site else (),
    )


def _pickling(raised: Raised) -> bool:
    """It came out of pickling what a new process gets."""
    starting = goes_through(raised, *STARTING, function="_launch")
    return starting and goes_through(raised, "multiprocessing/reduction.py", function="dump")


def _fix(culprit: Unpicklable) -> str:
    if not culprit.path:
        return "Keep locks, open files, lambdas and local classes out of what the workers get, or create them there."
    if culprit.kind == "function":
        return f"Set `{culprit.path}` to a function defined with `def` at the top level of a module."
    if culprit.kind == "class":
        return f"Define the class of `{culprit.path}` at the top level of a module."
    return (
        f"Create `{culprit.path}` in the worker: set it to None in `__init__`, and create it at its first use in "
        "`__getitem__` or in `worker_init_fn`."
    )


RULE = Rule("unpicklable-dataset", "death", decide)
