"""unpicklable-dataset: what a worker is to be handed cannot be pickled.

What it sees
    The run dies while it starts a process by `spawn` or `forkserver`: the data set, the collate function or
    another argument cannot be turned into bytes.

Why it matters
    Such a process shares nothing with its parent. All it is given is pickled, and locks, open files, lambdas and
    functions inside functions cannot be.

Evidence
    The exception, the attribute that cannot be pickled and what it is, found in the dying process.

Fix
    Make the attribute in the worker, at first use (or in `worker_init_fn`), or define the function at the top
    level of a module.

When it is wrong
    Where an object pickles itself in a way of its own the attribute may not be found; the exception still stands.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.deaths import Raised, Unpicklable
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import passes, said, spot, user_line, whole
from unstuck.rules.rule import Rule

STARTS = ("multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    error = pickling(end) if end is not None else None
    if end is None or end.died is None or error is None:
        return
    found = end.died.pickling or Unpicklable()
    path, what, line = found.path, found.what, user_line(error)
    named = f"`{path}` is {what}" if path else "something it holds"
    yield RULE.finding(
        severity="error",
        confidence=0.97 if path else 0.9,
        title=f"a worker could not be started: {named}{', which' if path else ''} cannot be pickled",
        evidence=(
            f"`{said(error)}` while {spot(line)} started a process",
            *([f"`{path}`, which the worker is to get, is {what}"] if path else []),
            *error.notes[:2],
            *_start_method(end),
            end.progress(),
        ),
        where=end.where(line, end.died),
        fix=Fix(_fix(found)),
        seen_by="exit",
        also=(Where(*found.site),) if found.site else (),
    )


def pickling(end: Death) -> Raised | None:
    """The exception of pickling what a new process is to get."""
    for raised in whole(end.died.raised) if end.died is not None else ():
        if passes(raised, *STARTS, function="_launch") and passes(
            raised, "multiprocessing/reduction.py", function="dump"
        ):
            return raised
    return None


def _start_method(end: Death) -> list[str]:
    methods = [each.start_method for each in end.case.loaders if each.pid == end.pid and each.start_method]
    return [f"the start method is {methods[-1]}; under fork nothing is pickled"] if methods else []


def _fix(found: Unpicklable) -> str:
    if found.path and found.kind == "function":
        return f"Give `{found.path}` a function defined with `def` at the top level of a module."
    if found.path and found.kind == "class":
        return f"Define the class of `{found.path}` at the top level of a module."
    if found.path:
        return (
            f"Make `{found.path}` in the worker: set it to None in `__init__`, and create it at its first use in "
            "`__getitem__` or in `worker_init_fn`."
        )
    return "Keep locks, open files, lambdas and local classes out of what the workers get, or create them there."


RULE = Rule("unpicklable-dataset", "death", decide)
