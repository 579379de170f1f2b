"""Which attribute of what a new process is handed cannot be pickled. Reads attributes only; calls nothing."""

from __future__ import annotations

import functools
import io
import types
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from ... import objects, user_code
from ...records.deaths import Unpicklable
from ..object_walk import ATOMS, ObjectWalk, held_by

MOST_OBJECTS = 20_000
MOST_PARTS = 200  # of one object
PATH = 200  # letters
_LOCKS = ("lock", "RLock", "_local")
_KINDS = (types.ModuleType, types.GeneratorType, types.CoroutineType, types.FrameType, types.TracebackType, memoryview)
_SKIPPED = ATOMS - objects.ids(types.ModuleType, types.FrameType)
_qualname = type.__dict__["__qualname__"].__get__
_FILE: type = io.IOBase.__mro__[1]  # its C part, which has no `__instancecheck__`
_LATER = ("multiprocessing", "torch", "numpy", "_io", "builtins")  # what these hold is pickled in their own way
_FOREIGN = {"sqlite3": "a database connection", "socket": "a socket", "mmap": "a memory map", "h5py": "an HDF5 file"}
_OPEN = objects.ids(list, tuple, set, frozenset, dict, types.MethodType, functools.partial)


def find(process: Any, message: str) -> Unpicklable | None:
    """The first culprit in breadth; where there are several, the one that the message speaks of."""
    walk = ObjectWalk(_inside, MOST_OBJECTS, skip=_SKIPPED)
    arguments = _arguments(objects.instance_dict(process) or {})
    culprits = [(path, value) for path, value in walk.over(arguments) if _why(value)[0]]
    named = [(path, value) for path, value in culprits if any(word in message for word in _words(value))]
    for path, value in named or culprits:
        what, kind = _why(value)
        site = user_code.code_site(value) if type(value) is types.FunctionType else None
        return Unpicklable(path=path[:PATH], what=what, kind=kind, site=site)
    return None


def _words(value: Any) -> list[str]:
    """As Python's messages call it."""
    kind = type(value)
    named = value.__qualname__ if kind is types.FunctionType else _qualname(value) if issubclass(kind, type) else ""
    module, name = objects.module_of(kind), objects.class_name(kind)
    return [word for word in (named, f"{module}.{_qualname(kind)}", name) if word]


def _arguments(own: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the process is given, by the names its target calls them."""
    target = own.get("_target")
    code = target.__code__ if type(target) is types.FunctionType else None
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    for place, value in enumerate(own.get("_args") or ()):
        yield (names[place] if place < len(names) else f"argument {place}"), value
    for name, value in (own.get("_kwargs") or {}).items():
        yield str(name), value
    yield "target", target
    for name, value in own.items():
        if not name.startswith("_"):
            yield f"process.{name}", value


def _why(value: Any) -> tuple[str, Literal["function", "class", "object"]]:
    """What it is, if it cannot be pickled; else an empty text."""
    kind = type(value)
    module, name = objects.module_of(kind), objects.class_name(kind)
    if kind is types.FunctionType:
        if "<lambda>" in value.__qualname__:
            return "a lambda", "function"
        return "a function defined inside another function" if "<locals>" in value.__qualname__ else "", "function"
    if module in ("_thread", "threading") and name in _LOCKS:
        return "a threading lock", "object"
    if issubclass(kind, _FILE) and not issubclass(kind, (io.BytesIO, io.StringIO)):
        return "an open file", "object"
    if issubclass(kind, _KINDS):
        return f"a {name}", "object"
    if issubclass(kind, type):
        return "a class defined inside a function" if "<locals>" in _qualname(value) else "", "class"
    foreign = _FOREIGN.get(module.partition(".")[0])
    if foreign:
        return foreign, "object"
    return f"an instance of {name}, a class defined inside a function" if "<locals>" in _qualname(kind) else "", "class"


def _inside(value: Any) -> Iterable[tuple[str, Any]]:
    kind = type(value)
    if _why(value)[0] or issubclass(kind, type):
        return ()
    plain = objects.module_of(kind).partition(".")[0] not in _LATER or _is_plain_torch(kind)
    return held_by(value, MOST_PARTS) if id(kind) in _OPEN or (plain and not _pickles_itself(kind)) else ()


def _is_plain_torch(kind: type) -> bool:
    """Datasets and samplers of torch, which keep their parts as plain attributes."""
    return objects.module_of(kind).startswith(("torch.utils.data", "torch.nn.modules"))


def _pickles_itself(kind: type) -> bool:
    """It says itself what is to be pickled: what it holds need not be."""
    own = [base for base in objects.mro_of(kind) if base is not object]
    own = [base for base in own if not objects.module_of(base).startswith("torch.utils.data")]
    names = ("__getstate__", "__reduce__", "__reduce_ex__")
    return any(name in objects.class_dict(base) for base in own for name in names)
