"""How long something says it is, asked only where the answer cannot change anything.

A user's `__len__` may draw random numbers, build batches or print. It is called only if its code stores nothing and
calls nothing but arithmetic and the lengths of other things, which are looked at in the same way.
"""

from __future__ import annotations

import builtins
import dis
from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HARMLESS = frozenset(
    (
        *("len", "int", "min", "max", "sum", "abs", "round", "ceil", "floor", "math", "float", "super", "__len__"),
        *("range", "values", "keys", "items", "enumerate", "zip", "any", "all", "size", "dim", "numel"),
    )
)
_STORES = ("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "DELETE_", "IMPORT_", "RAISE_VARARGS")
_INLINE = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
_DEEP = 6
_BUILTINS = vars(builtins)


def length(thing: Any) -> int | None:
    """`len(thing)`, or None where it has none or it is not safe to ask."""
    try:
        return len(thing) if _safe(thing, 0) else None
    except Exception:
        return None


def loader_length(loader: Any) -> int | None:
    """Batches of one pass, as the loader itself would say. Not `len(loader)`: torch remembers having been asked."""
    own = loader.__dict__
    sampler, size = drawing(loader), own.get("batch_size")
    if not is_iterable(loader):
        known = None if sampler is None else length(sampler)
        return _rounds(loader, size) if known is None and type(size) is int else known
    samples = length(own.get("dataset"))
    if samples is None or own.get("batch_sampler") is None:
        return samples
    return int(samples // size if own.get("drop_last") else -(-samples // size))


def _rounds(loader: Any, size: int) -> int | None:
    """A sampler that does not say how long it is goes, in one pass, once through the data set."""
    samples = length(loader.__dict__.get("dataset"))
    return None if samples is None else -(-samples // size)


def drawing(loader: Any) -> Any:
    """What its batches are drawn by. Not `or`, which would ask the user's sampler for its length."""
    batches = loader.__dict__.get("batch_sampler")
    return batches if batches is not None else loader.__dict__.get("sampler")


def is_iterable(loader: Any) -> bool:
    return bool(loader.__dict__.get("_dataset_kind") == 1)


def _safe(thing: Any, depth: int) -> bool:
    if type(thing) in (list, tuple, dict, set, frozenset, str, bytes, range):
        return True
    asked = getattr(type(thing), "__len__", None)
    if asked is None or depth > _DEEP:
        return False
    if not isinstance(asked, FunctionType):  # written in C: a tensor, an array, a table
        return getattr(type(thing), "__module__", "").partition(".")[0] in ("torch", "numpy", "collections", "array")
    if asked.__module__.partition(".")[0] != "torch" and not _harmless(asked.__code__, asked.__globals__, type(thing)):
        return False
    return all(_safe(part, depth + 1) for part in _asked_too(thing, asked))


def _harmless(code: CodeType, names: dict[str, Any], kind: type) -> bool:
    """It stores nothing but its own names and calls nothing but what is known to be harmless."""
    for step in dis.get_instructions(code):
        name = str(step.argval)
        if step.opname.startswith(_STORES) or (step.opname == "YIELD_VALUE" and code.co_name != "<genexpr>"):
            return False
        if name in HARMLESS:
            continue
        calls = step.opname == "LOAD_METHOD" or (step.opname == "LOAD_ATTR" and "NULL" in step.argrepr)
        called = names.get(name, _BUILTINS.get(name)) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
        own = getattr(kind, name, None) if step.opname == "LOAD_ATTR" else None
        if calls or callable(called) or callable(own) or isinstance(own, property):
            return False
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return all(each.co_name in _INLINE and _harmless(each, names, kind) for each in inner)


def _asked_too(thing: Any, asked: FunctionType) -> list[Any]:
    """Attributes of it that its `__len__` mentions and that have a length of their own."""
    own = getattr(thing, "__dict__", {})
    return [own[name] for name in asked.__code__.co_names if name in own and hasattr(type(own[name]), "__len__")]
