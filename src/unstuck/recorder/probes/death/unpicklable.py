"""Which attribute of what a new process is handed cannot be pickled. Reads attributes only; calls nothing."""

from __future__ import annotations

import functools
import io
import types
from collections import deque
from itertools import islice

from ... import objects, user_code
from ...records.deaths import Unpicklable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    Culprit = tuple[str, Any, str, Literal["function", "class", "object"]]  # path, itself, what it is

MOST = 20_000  # objects looked at
WIDE = 200  # elements of a container
LONGEST = 200  # of a path
_LOCKS = ("lock", "RLock", "_local")
_KINDS = (types.ModuleType, types.GeneratorType, types.CoroutineType, types.FrameType, types.TracebackType, memoryview)
_SEQUENCES = objects.ids(list, tuple, set, frozenset)
_qualname = type.__dict__["__qualname__"].__get__
_FILE: type = io.IOBase.__mro__[1]  # its C part, which has no `__instancecheck__`
_LATER = ("multiprocessing", "torch", "numpy", "_io", "builtins")  # what these hold is pickled in their own way
_FOREIGN = {"sqlite3": "a database connection", "socket": "a socket", "mmap": "a memory map", "h5py": "an HDF5 file"}


def find(process: Any, message: str) -> Unpicklable | None:
    """The first culprit in breadth; where there are several, the one that the message speaks of."""
    found = list(_culprits(process))
    named = [each for each in found if any(word in message for word in _words(each[1]))]
    for path, value, what, kind in named or found:
        site = user_code.code_site(value) if type(value) is types.FunctionType else None
        return Unpicklable(path=path, what=what, kind=kind, site=site)
    return None


def _words(value: Any) -> list[str]:
    """As Python's messages call it."""
    kind = type(value)
    named = value.__qualname__ if kind is types.FunctionType else _qualname(value) if issubclass(kind, type) else ""
    module, name = objects.module_of(kind), objects.class_name(kind)
    return [word for word in (named, f"{module}.{_qualname(kind)}", name) if word]


def _culprits(process: Any) -> Iterator[Culprit]:
    waiting = deque(_arguments(objects.instance_dict(process) or {}))
    seen: set[int] = set()
    while waiting and len(seen) < MOST:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        what, kind = _why(value)
        if what:
            yield path[:LONGEST], value, what, kind
        else:
            waiting.extend(islice(_inside(path[:LONGEST], value), WIDE))


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
    kind = type(value)
    module, name = objects.module_of(kind), objects.class_name(kind)
    if kind is types.FunctionType:
        if "<lambda>" in value.__qualname__:
            return "a lambda", "function"
        return "a function defined inside another" if "<locals>" in value.__qualname__ else "", "function"
    if module in ("_thread", "threading") and name in _LOCKS:
        return "a lock of this process's threads", "object"
    if issubclass(kind, _FILE) and not issubclass(kind, (io.BytesIO, io.StringIO)):
        return "an open file", "object"
    if issubclass(kind, _KINDS):
        return f"a {name}", "object"
    if issubclass(kind, type):
        return "a class defined inside a function" if "<locals>" in _qualname(value) else "", "class"
    foreign = _FOREIGN.get(module.partition(".")[0])
    if foreign:
        return foreign, "object"
    return f"a {name}, a local class" if "<locals>" in _qualname(kind) else "", "class"


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if id(kind) in _SEQUENCES:
        yield from ((f"{path}[{place}]", item) for place, item in enumerate(value))
    elif kind is dict:
        yield from ((f"{path}[{_shown(key)}]" if _shown(key) else path, item) for key, item in value.items())
    elif kind is functools.partial:
        yield f"{path}.func", value.func
        yield from _inside(path, value.args)
        yield from _inside(path, value.keywords)
    elif kind is types.MethodType:
        yield f"{path}.__self__", value.__self__
    elif (objects.module_of(kind).partition(".")[0] not in _LATER or _plain_torch(kind)) and not _pickles_itself(kind):
        yield from ((f"{path}.{name}", item) for name, item in (objects.instance_dict(value) or {}).items())


def _shown(key: object) -> str:
    if type(key) is str:
        return repr(key[:LONGEST])
    return repr(key) if type(key) is int and key.bit_length() < LONGEST else ""


def _plain_torch(kind: type) -> bool:
    """Datasets and samplers of torch, which keep their parts as plain attributes."""
    return objects.module_of(kind).startswith(("torch.utils.data", "torch.nn.modules"))


def _pickles_itself(kind: type) -> bool:
    """It says itself what is to be pickled: what it holds need not be."""
    own = [c for c in objects.mro_of(kind) if c is not object]
    own = [objects.class_dict(c) for c in own if not objects.module_of(c).startswith("torch.utils.data")]
    return any(name in space for space in own for name in ("__getstate__", "__reduce__", "__reduce_ex__"))
