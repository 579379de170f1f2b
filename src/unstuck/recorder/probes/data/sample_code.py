"""The code that gives a dataset's samples, read and never run: the names in it, and whether it asks its worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

from ... import objects
from .. import object_walk
from ..object_walk import ObjectWalk

GIVING = ("__getitem__", "__getitems__", "__iter__", "__call__", "forward")
WORKER = "get_worker_info"
MOST_ATTRIBUTES = 64  # of one object
MOST_METHODS, MOST_CODES, MOST_FUNCTIONS = 50, 100, 300  # of one object, inside one function, of all that is followed
MOST_NESTED, NESTED_DEPTH = 64, 5  # datasets within datasets
_PLAIN = ("builtins", "numpy")
_WRAPPERS = objects.ids(staticmethod, classmethod)


def package_of(kind: type) -> str:
    return objects.module_of(kind).partition(".")[0]


def attributes(thing: Any) -> list[tuple[str, Any]]:
    """The first of its own attributes, with their names."""
    return object_walk.attributes(thing, MOST_ATTRIBUTES)


def method_of(kind: type, name: str) -> FunctionType | None:
    """The Python function that a class has under this name; no descriptor is asked."""
    found = objects.in_class(kind, name)
    if found is None:
        return None
    value = found[1].__func__ if id(type(found[1])) in _WRAPPERS else found[1]
    return value if type(value) is FunctionType else None


def names_in(function: FunctionType) -> set[str]:
    """In its code, and in that of what is defined in it."""
    codes = [function.__code__]
    for code in codes:  # it grows
        codes += [inner for inner in code.co_consts if type(inner) is CodeType][: max(0, MOST_CODES - len(codes))]
    return {name for code in codes for name in code.co_names}


def methods(thing: Any) -> list[FunctionType]:
    """The methods of an object that give a sample, and those of its methods that these name."""
    kind = type(thing)
    if package_of(kind) in _PLAIN:
        return []
    found: list[FunctionType] = []
    waiting, asked = deque(GIVING), set(GIVING)
    while waiting and len(found) < MOST_METHODS:
        function = method_of(kind, waiting.popleft())
        if function is not None:
            found.append(function)
            new = names_in(function) - asked
            asked |= new
            waiting.extend(sorted(new))
    return found


def giving(dataset: Any) -> Iterator[FunctionType]:
    """Every method that takes part in giving a sample: of the dataset, and of what it holds."""
    things = (dataset, *(value for _, value in attributes(dataset)))
    return islice((function for thing in things for function in methods(thing)), MOST_FUNCTIONS)


def names_read(dataset: Any) -> set[str]:
    """Every name in the code that gives a sample."""
    return {name for function in giving(dataset) for name in names_in(function)}


def asks_its_worker(dataset: Any, init: Any) -> bool:
    """This code, or that of the function that prepares each worker, asks in which worker it runs: itself, or in a
    function that it calls."""
    waiting = deque([init, *(function for thing in _nested(dataset) for function in methods(thing))])
    done: set[int] = set()
    while waiting and len(done) < MOST_FUNCTIONS:
        function = _function(waiting.popleft())
        if function is None or id(function.__code__) in done:
            continue
        done.add(id(function.__code__))
        names = names_in(function)
        if WORKER in names or function.__code__.co_name == WORKER:
            return True
        module = function.__module__
        if type(module) is not str or module.partition(".")[0] != "torch":  # what torch calls is no concern of theirs
            known = function.__globals__
            waiting.extend(known[name] for name in sorted(names) if name in known)
            waiting.extend(_enclosed(function))
    return False


def _nested(dataset: Any) -> list[Any]:
    """The dataset, what it holds, and what the datasets among that hold."""

    def inside(thing: Any) -> Iterator[tuple[str, Any]]:
        if thing is dataset or any(method_of(type(thing), name) for name in ("__iter__", "__getitem__")):
            yield from (pair for pair in attributes(thing) if package_of(type(pair[1])) not in _PLAIN)

    return [thing for _, thing in ObjectWalk(inside, MOST_NESTED, NESTED_DEPTH).over([("", dataset)])]


def _function(thing: Any) -> FunctionType | None:
    """A function, a part of one, a method, or that of an object that can be called."""
    kind = type(thing)
    if kind is partial:
        return _function(thing.func)
    if kind is MethodType:
        return _function(thing.__func__)
    if kind is FunctionType:
        return thing  # type: ignore[no-any-return]
    return None if issubclass(kind, type) else method_of(kind, "__call__")


def _enclosed(function: FunctionType) -> list[Any]:
    try:
        return [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # one of them is not filled yet
        return []
