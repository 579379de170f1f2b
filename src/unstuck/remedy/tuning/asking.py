"""Does code ask in which worker it runs? Read from the code itself, functions that it calls included."""

from __future__ import annotations

import sys
from functools import partial
from types import CodeType, FunctionType, MethodType

from ...recorder.probes.data.dataset_state import names_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORKER = "get_worker_info"
FUNCTIONS, DEPTH = 50, 4
"""Functions that are followed, and data sets within data sets."""


def asks_for_its_worker(loader: Any) -> bool:
    """The data set does, or the function that is called in each worker at its start."""
    return _reads(loader.worker_init_fn) or _data_set_asks(loader.dataset, DEPTH)


def _data_set_asks(dataset: Any, depth: int) -> bool:
    names = names_read(dataset)
    space = vars(sys.modules.get(type(dataset).__module__, sys))
    if WORKER in names or any(_reads(space.get(name)) for name in names):
        return True
    own = getattr(dataset, "__dict__", None)
    held = list(own.values())[:64] if type(own) is dict and depth else []
    return any(hasattr(type(each), "__iter__") and _data_set_asks(each, depth - 1) for each in held if _is_users(each))


def _is_users(thing: Any) -> bool:
    return type(thing).__module__.partition(".")[0] not in ("builtins", "numpy", "collections")


def _reads(thing: Any) -> bool:
    """A function, a part of one, a method or an object that is called."""
    waiting, done = [thing], set[CodeType]()
    while waiting and len(done) < FUNCTIONS:
        function = _function(waiting.pop())
        if function is None or function.__code__ in done:
            continue
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            if WORKER in code.co_names:
                return True
            done.add(code)
            codes += [each for each in code.co_consts if isinstance(each, CodeType)]
            waiting += [function.__globals__.get(name) for name in code.co_names]
        waiting += _enclosed(function)
    return False


def _function(thing: Any) -> FunctionType | None:
    if type(thing) is partial:
        return _function(thing.func)
    if isinstance(thing, MethodType):
        return _function(thing.__func__)
    if isinstance(thing, FunctionType):
        return thing
    called = None if thing is None or isinstance(thing, type) else getattr(type(thing), "__call__", None)  # noqa: B004
    return called if isinstance(called, FunctionType) else None


def _enclosed(function: FunctionType) -> list[Any]:
    try:
        return [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # one of them is not filled yet
        return []
