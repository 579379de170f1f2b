"""By which name a data set holds an open file, and whether it holds a lock that may guard it."""

from __future__ import annotations

import io
import sys
from collections import deque

from ... import attempts, objects
from ..learning import script_lines
from . import dataset_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OBJECTS, DEPTH = 2000, 5
GUARDS = ("multiprocessing.synchronize", "multiprocessing.managers", "filelock")


def about(dataset: Any, number: int) -> dict[str, Any]:
    """The attribute that is, or leads to, this descriptor; the line that gives it; and whether there is a guard."""
    name, guarded = "", attempts.locks_files or _guard_beside(dataset)
    waiting: deque[tuple[str, Any, int]] = deque([("", dataset, 0)])
    seen: set[int] = set()
    while waiting and len(seen) < OBJECTS:
        path, thing, depth = waiting.popleft()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        guarded = guarded or _is_guard(thing)
        if not name and _descriptor(thing) == number:
            name = path
        if depth < DEPTH:
            own = objects.instance_dict(thing)
            beneath = list(own.items()) if own is not None else objects.ends(thing)
            waiting.extend(
                (f"{path}.{key}" if own is not None else f"{path}[{key!r}]", value, depth + 1) for key, value in beneath
            )
    first = name.lstrip(".").partition(".")[0].partition("[")[0]
    site = script_lines.assigned(type(dataset), first) if first else None
    return {"attribute": name.lstrip("."), "opened": site, "guarded": guarded}


def _descriptor(thing: Any) -> int | None:
    """Of Python's own file objects, down to the bare file; a plain number may be one as well."""
    kind = type(thing)
    try:
        if kind is io.TextIOWrapper:
            return _descriptor(thing.buffer)
        if kind in (io.BufferedReader, io.BufferedRandom):
            return _descriptor(thing.raw)
        return thing.fileno() if kind in (io.FileIO, int) and kind is not int else thing if kind is int else None
    except ValueError:  # closed
        return None


def _is_guard(thing: Any) -> bool:
    return type(thing).__module__.startswith(GUARDS)


def _guard_beside(dataset: Any) -> bool:
    """A lock in the data set's module that its sample path names."""
    space = getattr(sys.modules.get(type(dataset).__module__), "__dict__", {})
    return any(_is_guard(space.get(name)) for name in dataset_state.names_read(dataset))
