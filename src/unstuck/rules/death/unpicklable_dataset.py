"""unpicklable-dataset: what a worker is to be handed cannot be pickled.

What it sees
    The run dies while it starts a process by `spawn` or `forkserver`: the data set, the collate function or
    another argument cannot be turned into bytes.

Why training stops
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
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import Error, spot
from unstuck.rules.rule import Rule

STARTS = ("multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py")


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    error = pickling(end) if end is not None else None
    if end is None or error is None:
        return
    found = (end.error.torch if end.error is not None else {}).get("pickling") or {}
    path, what, site = str(found.get("path") or ""), str(found.get("what") or ""), found.get("site")
    named = f"`{path}` is {what}" if path else "something it holds"
    notes = [str(note) for note in error.data.get("notes") or ()]
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.97 if path else 0.9,
        title=f"a worker could not be started: {named}{', which' if path else ''} cannot be pickled",
        evidence=(
            f"`{error.said}` while {spot(error.user)} started a process",
            *([f"`{path}`, which the worker is to get, is {what}"] if path else []),
            *notes[:2],
            *_start_method(end),
            end.progress(),
        ),
        where=end.where(error.user, error),
        fix=Fix(_fix(path, what)),
        seen_by="exit",
        also=(Where(*site),) if isinstance(site, list) and len(site) == 3 else (),
    )


def pickling(end: Death) -> Error | None:
    """The exception of pickling what a new process is to get."""
    for error in end.error.whole if end.error is not None else ():
        if error.passes(*STARTS, function="_launch") and error.passes("multiprocessing/reduction.py", function="dump"):
            return error
    return None


def _start_method(end: Death) -> list[str]:
    methods = [f.data.get("start_method") for f in end.case.facts if f.kind == "loader" and f.pid == end.pid]
    named = next((m for m in reversed(methods) if m), None)
    return [f"the start method is {named}; under fork nothing is pickled"] if named else []


def _fix(path: str, what: str) -> str:
    if "lambda" in what or "function" in what:
        return f"Give `{path}` a function defined with `def` at the top level of a module."
    if "class" in what:
        return f"Define the class of `{path}` at the top level of a module."
    if path:
        return (
            f"Make `{path}` in the worker: set it to None in `__init__`, and create it at its first use in "
            "`__getitem__` or in `worker_init_fn`."
        )
    return "Keep locks, open files, lambdas and local classes out of what the workers get, or create them there."


RULE = Rule("unpicklable-dataset", "death", decide)
