"""What a dataset does that decides about workers: reads through a file that was open before, keeps the samples it has
read, is changed by the script between passes.

Files are followed by their offsets: where one moves while samples are read, forked workers would move it for each
other. Nothing is read, nothing is moved.
"""

from __future__ import annotations

import ast
import functools
import itertools
import os
import sys
from collections import OrderedDict, defaultdict, deque

from ..recorder import objects
from ..recorder.probes.data.sample_code import GIVING, asks_its_worker, attributes, names_read, package_of
from ..recorder.probes.data.shared_handles import Handle, descriptor, handle_of, is_guarded, open_numbers
from ..takeover import import_safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .worker_settings import Settings

MOST_FILES = 64
GROWN_BY = 8  # entries more in a container, from which on samples are kept there
CONTAINERS = (dict, list, set, deque, OrderedDict, defaultdict)
NOT_AFTER_FORK = ("h5py", "sqlite3")  # their open files must not be used in a forked process; offsets say nothing
BUILDING = ("__init__", "__post_init__", "__setstate__", "__new__")


class Signs:
    """`why_not()` and `keeps()` compare with how it was when this was made."""

    def __init__(self, loader: Any, present: Settings) -> None:
        self._loader, self._dataset, self._present = loader, loader.dataset, present
        self._sizes = dict(_sizes(self._dataset))
        self._files: dict[int, Handle] = {}
        self._follow()

    def why_not(self) -> str:
        """Why there must be no forked workers, in sentences."""
        moved = [file for file in self._files.values() if _was_moved(file)]
        self._follow()
        workers = self._present.num_workers
        if import_safe.start_method(self._present.start_method) != "fork" or (not workers and self._opens_its_own()):
            return ""
        for file in moved:
            name = _holder(self._dataset, file.number)
            if name and not is_guarded(self._dataset):
                return self._shared(name)
        held = (name for name, value in _attributes(self._dataset) if package_of(type(value)) in NOT_AFTER_FORK)
        name = "" if workers else next(held, "")
        return self._shared(name) if name else ""

    def keeps(self) -> str:
        """The name of what grows with the samples that are read; empty if nothing does."""
        now = dict(_sizes(self._dataset))
        return next((name for name, size in now.items() if size >= self._sizes.get(name, 0) + GROWN_BY), "")

    def _shared(self, name: str) -> str:
        kind = type(self._dataset).__name__
        if self._present.num_workers:
            return (
                f"The workers of {kind} read through one open file ({name}) and move it for each other: their samples "
                "may be wrong. Other numbers of workers were not measured; open the file in each worker."
            )
        return (
            f"No workers were measured: {kind} reads through a file that is open already ({name}), and forked workers "
            "would move it for each other and give wrong samples. If it is opened in each worker, set num_workers=1 "
            "and tune again."
        )

    def _opens_its_own(self) -> bool:
        """In a worker it may well open a file of its own."""
        init = self._loader.worker_init_fn
        return "getpid" in names_read(self._dataset) or asks_its_worker(self._dataset, init)

    def _follow(self) -> None:
        try:
            numbers = open_numbers(sys.maxsize)
        except OSError:
            numbers = []
        for number in numbers:
            file = self._files.get(number) or handle_of(number)
            if file is not None and len(self._files) < MOST_FILES:
                self._files[number] = file
                file.at = file.offset()


def _was_moved(file: Handle) -> bool:
    try:
        return file.at >= 0 and file.offset() not in (-1, file.at) and file.is_same()
    except OSError:
        return False


def _holder(dataset: Any, number: int) -> str:
    """By which name the dataset has this file before a worker is started. One that only a running pass has open, each
    worker opens for itself."""
    names = names_read(dataset)
    module = _module_of(dataset)
    for name, value in (*_attributes(dataset), *((name, module.get(name)) for name in names)):
        inside = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
        for held in (value, *itertools.islice(inside, MOST_FILES)):
            if descriptor(held, "lseek" in names) == number:
                return name
    return ""


def _attributes(thing: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Its own, and those of what it holds, by path."""
    for name, value in attributes(thing):
        yield name, value
        if depth and package_of(type(value)) not in ("builtins", "torch", "numpy"):
            yield from ((f"{name}.{inner}", held) for inner, held in _attributes(value, depth - 1))


def _sizes(dataset: Any) -> Iterator[tuple[str, int]]:
    for name, value in _attributes(dataset):
        if type(value) in CONTAINERS:
            yield name, len(value)
    module = _module_of(dataset)
    for name in names_read(dataset) | {"__getitem__"}:
        for _, function in (objects.in_class(type(dataset), name) or (None, None), (None, module.get(name))):
            if type(function) is functools._lru_cache_wrapper:
                yield name, function.cache_info().currsize


def _module_of(dataset: Any) -> dict[str, Any]:
    """The names in the module that its class is written in."""
    return objects.module_dict(sys.modules.get(objects.module_of(type(dataset)))) or {}


# --- does the script change its dataset while it trains? Workers that live on would not see it -----------------------


def changed_between_passes(dataset: Any) -> str:
    """An attribute that its samples depend on and that is set in a loop, or by what is called in one, with the line;
    empty if there is none."""
    names = names_read(dataset)
    held = names & {name.rpartition(".")[2] for name, _ in _attributes(dataset)}
    for path in _files(dataset) if held else ():
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            continue
        seen = _Stores(held, {*BUILDING, *GIVING, *names})
        seen.visit(tree)
        for name, line, function in seen.stores:
            if function is None or function in seen.called:
                return f"{name} ({os.path.basename(path)}:{line})"
    return ""


def _files(dataset: Any) -> list[str]:
    """The script, and where the classes of the dataset are."""
    things = (dataset, *(value for _, value in attributes(dataset)))
    modules = ["__main__", *(objects.module_of(kind) for thing in things for kind in objects.mro_of(type(thing)))]
    paths = [getattr(sys.modules.get(name), "__file__", None) for name in modules]
    return list(dict.fromkeys(path for path in paths if path and os.sep + "torch" + os.sep not in path))


class _Stores(ast.NodeVisitor):
    """`stores`: name, line and, outside a loop, the function it is in; `called`: functions called in a loop."""

    def __init__(self, names: set[str], reading: set[str]) -> None:
        self._names, self._reading = names, reading
        self._function: str | None = None
        self._loops = 0
        self.stores: list[tuple[str, int, str | None]] = []
        self.called: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = self._function, self._loops
        self._function, self._loops = node.name, 0
        self.generic_visit(node)
        self._function, self._loops = outside

    def visit_For(self, node: ast.For | ast.While) -> None:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    visit_While = visit_For

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if self._loops:
            self.called.add(name)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        stored = isinstance(node.ctx, ast.Store) and node.attr in self._names and not self._is_reading(node)
        if stored and (self._loops or self._function is not None):
            self.stores.append((node.attr, node.lineno, None if self._loops else self._function))
        self.generic_visit(node)

    def _is_reading(self, node: ast.Attribute) -> bool:
        """The dataset builds itself, or notes something as it gives a sample: in each worker for itself."""
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        return own and self._function in self._reading
