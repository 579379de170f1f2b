"""By which name a dataset holds an open file, and whether it holds a lock that may guard it."""

from __future__ import annotations

import io
from collections import deque

from ... import attempts, objects
from ..learning.script_lines import ScriptLines
from .sample_code import giving, names_in, names_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...records import Site

OBJECTS, DEPTH = 2000, 5
KEY = 40
"""Characters of a name."""
GUARDS = ("multiprocessing.synchronize", "multiprocessing.managers", "filelock")


def held_as(dataset: Any, number: int) -> str:
    """The attribute that is, or leads to, this descriptor; empty if none is found."""
    by_number = "lseek" in names_read(dataset)
    found = (path for path, thing in _reached(dataset) if descriptor(thing, by_number) == number)
    return next(found, "").lstrip(".")


def opened_at(dataset: Any, attribute: str) -> Site | None:
    """The line that gives this attribute its value."""
    first = attribute.partition(".")[0].partition("[")[0]
    return ScriptLines().assigned(type(dataset), first) if first else None


def is_guarded(dataset: Any) -> bool:
    """There is a lock that may guard its files: this process locks files; the dataset holds a lock; or its sample path
    names one."""
    if attempts.locks_files() or any(_is_guard(thing) for _, thing in _reached(dataset)):
        return True
    named = ((function.__globals__, name) for function in giving(dataset) for name in names_in(function))
    return any(_is_guard(space.get(name)) for space, name in named)


def descriptor(thing: Any, by_number: bool) -> int | None:
    """Of Python's own file objects, down to the bare file; of a plain number where files are moved by theirs."""
    kind = type(thing)
    try:
        if kind is io.TextIOWrapper:
            return descriptor(thing.buffer, False)
        if kind is io.BufferedReader or kind is io.BufferedRandom:
            return descriptor(thing.raw, False)
        if kind is io.FileIO:
            return int(thing.fileno())
    except ValueError:  # closed
        return None
    return thing if by_number and kind is int else None


def _reached(dataset: Any) -> Iterator[tuple[str, Any]]:
    """The dataset and what it holds, each with its path."""
    waiting: deque[tuple[str, Any, int]] = deque([("", dataset, 0)])
    seen: set[int] = set()
    while waiting and len(seen) < OBJECTS:
        path, thing, depth = waiting.popleft()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        yield path, thing
        if depth < DEPTH and len(waiting) < OBJECTS:
            waiting.extend((path + step, value, depth + 1) for step, value in _beneath(thing))


def _beneath(thing: Any) -> Iterator[tuple[str, Any]]:
    own = objects.instance_dict(thing)
    if own is None:
        for key, value in objects.some_items(thing):
            yield f"[{key[:KEY]!r}]" if type(key) is str else f"[{key}]" if type(key) is int else "[…]", value
    else:
        for key, value in objects.some_of(own.items()):
            yield f".{key[:KEY]}" if type(key) is str else ".…", value


def _is_guard(thing: Any) -> bool:
    return objects.module_of(type(thing)).startswith(GUARDS)
