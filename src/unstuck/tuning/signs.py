"""What a dataset does while it is measured: reads through a file that was open before, keeps the samples it has read.

Files are followed by their offsets: where one moves while samples are read, forked workers would move it for each
other. Nothing is read, nothing is moved.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections import OrderedDict, defaultdict, deque

from ..recorder import objects
from ..recorder.probes.data import shared_handles
from ..recorder.probes.data.sample_code import asks_its_worker, attributes, names_read, package_of
from ..recorder.probes.data.shared_handles import Handle, handle_of, open_numbers
from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .settings import Settings

MOST_FILES = 64
GROWN = 8
"""Things more in a container, from which on samples are kept there."""
CONTAINERS = (dict, list, set, deque, OrderedDict, defaultdict)
NOT_AFTER_A_FORK = ("h5py", "sqlite3")
"""Modules whose open files must not be used in a process that was forked, and whose offsets say nothing."""


class Signs:
    """`why_not()` and `keeps()` compare with how it was when this was made."""

    def __init__(self, loader: Any, present: Settings) -> None:
        self._loader, self._dataset, self._present = loader, loader.dataset, present
        self._sizes = dict(_sizes(self._dataset))
        self._files: dict[int, Handle] = {}
        self._follow()

    # --- files -------------------------------------------------------------------------------------------

    def why_not(self) -> str:
        """Why there must be no forked workers, in sentences."""
        moved = [each for each in self._files.values() if each.at >= 0 and each.offset() != each.at and _is_same(each)]
        self._follow()
        if guard.start_method(self._present.start_method) != "fork" or (
            not self._present.num_workers and self._opens()
        ):
            return ""
        for each in moved:
            name = _holder(self._dataset, each.number)
            if name and not shared_handles.is_guarded(self._dataset):
                return self._shared(name)
        held = "" if self._present.num_workers else _held(self._dataset)
        return self._shared(held) if held else ""

    def _shared(self, name: str) -> str:
        kind = type(self._dataset).__name__
        if self._present.num_workers:
            return (
                f"The workers of {kind} read through one open file ({name}) and move it for each other: what they give "
                "may be wrong. Other numbers of workers were not measured; open the file in each worker."
            )
        return (
            f"No workers were measured: {kind} reads through a file that is open already ({name}), and forked workers "
            "would move it for each other and give wrong samples. If it is opened in each worker, set num_workers=1 "
            "and tune again."
        )

    def _opens(self) -> bool:
        """In a worker it may well open a file of its own."""
        init = self._loader.worker_init_fn
        return "getpid" in names_read(self._dataset) or asks_its_worker(self._dataset, init)

    def _follow(self) -> None:
        for number in _descriptors():
            each = self._files.get(number) or handle_of(number)
            if each is not None and len(self._files) < MOST_FILES:
                self._files[number] = each
                each.at = each.offset()

    # --- what it keeps -----------------------------------------------------------------------------------

    def keeps(self) -> str:
        """The name of what grows with the samples that are read; empty if nothing does."""
        now = dict(_sizes(self._dataset))
        grown = [name for name, size in now.items() if size >= self._sizes.get(name, 0) + GROWN]
        return grown[0] if grown else ""


def _descriptors() -> list[int]:
    try:
        return open_numbers(sys.maxsize)
    except OSError:
        return []


def _is_same(each: Handle) -> bool:
    try:
        return each.offset() >= 0 and each.is_same()
    except OSError:
        return False


def _holder(dataset: Any, number: int) -> str:
    """By which name the dataset has this file before a worker is started. One that only a running pass has open, each
    worker opens for itself."""
    names = names_read(dataset)
    space = _names_around(dataset)
    for name, value in (*_attributes(dataset), *((name, space.get(name)) for name in names)):
        inside = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
        for each in (value, *itertools.islice(inside, MOST_FILES)):
            if shared_handles.descriptor(each, "lseek" in names) == number:
                return name
    return ""


def _held(dataset: Any) -> str:
    """An attribute that is an open file of a library which does not survive a fork."""
    for name, value in _attributes(dataset):
        if package_of(type(value)) in NOT_AFTER_A_FORK:
            return name
    return ""


def _attributes(thing: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    for name, value in attributes(thing):
        yield name, value
        if depth and package_of(type(value)) not in ("builtins", "torch", "numpy"):
            yield from ((f"{name}.{inner}", held) for inner, held in _attributes(value, depth - 1))


def _sizes(dataset: Any) -> Iterator[tuple[str, int]]:
    for name, value in _attributes(dataset):
        if type(value) in CONTAINERS:
            yield name, len(value)
    space = _names_around(dataset)
    for name in names_read(dataset) | {"__getitem__"}:
        for _, function in (objects.in_class(type(dataset), name) or (None, None), (None, space.get(name))):
            if type(function) is functools._lru_cache_wrapper:
                yield name, function.cache_info().currsize


def _names_around(dataset: Any) -> dict[str, Any]:
    """Those of the module that its class is written in."""
    return objects.module_dict(sys.modules.get(objects.module_of(type(dataset)))) or {}
