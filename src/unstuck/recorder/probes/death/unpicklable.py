"""Which attribute of what a new process is handed cannot be pickled. Reads attributes only; calls nothing."""

from __future__ import annotations

import functools
import io
import types
from collections import deque

from ... import user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST = 20_000  # objects looked at
_LOCKS = ("lock", "RLock", "_local")
_KINDS = (types.ModuleType, types.GeneratorType, types.CoroutineType, types.FrameType, types.TracebackType, memoryview)
_LATER = ("multiprocessing", "torch", "numpy", "_io", "builtins")  # what these hold is pickled in their own way
_FOREIGN = {"sqlite3": "a database connection", "socket": "a socket", "mmap": "a memory map", "h5py": "an HDF5 file"}


def find(process: Any, message: str) -> dict[str, object]:
    """The first culprit in breadth; where there are several, the one that the message speaks of."""
    found = list(_culprits(process))
    named = [each for each in found if any(word and word in message for word in each["words"])]
    if not (named or found):
        return {}
    best = (named or found)[0]
    return {name: best[name] for name in ("path", "what", "site")}


def _culprits(process: Any) -> Iterator[dict[str, Any]]:
    waiting = deque(_arguments(process))
    seen: set[int] = set()
    while waiting and len(seen) < MOST:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        what = _why(value)
        if what:
            kind = type(value)
            words = (getattr(value, "__qualname__", ""), f"{kind.__module__}.{kind.__qualname__}", kind.__name__)
            yield {"path": path, "what": what, "site": user_code.code_site(value), "words": words}
        else:
            waiting.extend(_inside(path, value))


def _arguments(process: Any) -> Iterator[tuple[str, Any]]:
    """What the process is given, by the names its target calls them."""
    own = process.__dict__
    target = own.get("_target")
    code = getattr(target, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    for place, value in enumerate(own.get("_args") or ()):
        yield (names[place] if place < len(names) else f"argument {place}"), value
    for name, value in (own.get("_kwargs") or {}).items():
        yield str(name), value
    yield "target", target
    for name, value in own.items():
        if not name.startswith("_"):
            yield f"process.{name}", value


def _why(value: Any) -> str:
    kind = type(value)
    if isinstance(value, types.FunctionType):
        if "<lambda>" in value.__qualname__:
            return "a lambda"
        return "a function defined inside another" if "<locals>" in value.__qualname__ else ""
    if kind.__module__ in ("_thread", "threading") and kind.__name__ in _LOCKS:
        return "a lock of this process's threads"
    if isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)):
        return "an open file"
    if isinstance(value, _KINDS):
        return f"a {kind.__name__}"
    foreign = _FOREIGN.get(kind.__module__.partition(".")[0])
    if foreign:
        return foreign
    if "<locals>" in (value.__qualname__ if isinstance(value, type) else kind.__qualname__):
        return "a class defined inside a function" if isinstance(value, type) else f"a {kind.__name__}, a local class"
    return ""


def _inside(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        yield from ((f"{path}[{place}]", item) for place, item in zip(range(200), value))  # noqa: B905
    elif kind is dict:
        yield from ((f"{path}[{key!r}]" if type(key) in (str, int) else path, value[key]) for key in list(value)[:200])
    elif kind is functools.partial:
        yield f"{path}.func", value.func
        yield from _inside(path, value.args)
        yield from _inside(path, value.keywords)
    elif kind is types.MethodType:
        yield f"{path}.__self__", value.__self__
    elif (kind.__module__.partition(".")[0] not in _LATER or _plain_torch(kind)) and not _pickles_itself(kind):
        yield from ((f"{path}.{name}", item) for name, item in _own(value).items())


def _plain_torch(kind: type) -> bool:
    """Data sets and samplers of torch, which keep their parts as plain attributes."""
    return kind.__module__.startswith(("torch.utils.data", "torch.nn.modules"))


def _pickles_itself(kind: type) -> bool:
    """It says itself what is to be pickled: what it holds need not be."""
    own = [c for c in kind.__mro__ if c is not object and not c.__module__.startswith("torch.utils.data")]
    return any(name in vars(c) for c in own for name in ("__getstate__", "__reduce__", "__reduce_ex__"))


def _own(value: Any) -> dict[str, Any]:
    try:
        return dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:  # it has slots, or is written in C
        return {}
