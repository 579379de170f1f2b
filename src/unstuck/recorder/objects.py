"""What an object holds, read without running anything of the user's: its type, attributes, elements, a frame's locals.

Types are distinguished by identity: a metaclass may have its own `__eq__`, `__hash__` or `__getattribute__`.
So never `type(x) in (list, dict)`, but `id(type(x)) in ids(list, dict)`, made once.
"""

from __future__ import annotations

import dis
import itertools
import sys
import types
from collections import deque
from functools import lru_cache

from . import user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any

SHORT = 64
"""Longer containers are looked into at their ends only."""
MANY = 500
"""Attributes of an instance, names of a class or module that are gone through."""
FAST = 0x3  # code flags: its locals are its own, not those of a module or a class
_LONGEST = 80  # letters of a name
_LARGEST = 100_000  # bytes of a function's code that are gone through

UNKNOWN: Any = type("Unknown", (), {})()
"""Stands for what cannot be read."""
KEYS = 1000
"""Of a dict, that are looked at before one is looked up."""

mro_of = type.__dict__["__mro__"].__get__
"""The classes of a class, itself first."""
class_dict = type.__dict__["__dict__"].__get__
"""The attributes of a class as they are written there."""
_name = type.__dict__["__name__"].__get__
_module = type.__dict__["__module__"].__get__
_module_dict = type.__dict__["__dict__"].__get__(types.ModuleType)["__dict__"].__get__


def ids(*kinds: type) -> frozenset[int]:
    """To ask whether a type is one of these. They must be types that are never freed."""
    return frozenset(map(id, kinds))


def class_name(kind: type) -> str:
    return str(_name(kind))[:_LONGEST]


def module_of(kind: type) -> str:
    """Name of the module that a class is written in."""
    name = _module(kind)
    return name if type(name) is str else ""


def in_class(kind: type, name: str) -> tuple[type, Any] | None:
    """The class that gives an attribute to those of `kind`, and what is written there: nothing is bound."""
    for each in mro_of(kind):
        space = class_dict(each)
        if name in space:
            return each, space[name]
    return None


def instance_dict(thing: Any) -> dict[str, Any] | None:
    """Its attributes, through the type's own slot for them: a `__dict__` that the user defined is not run."""
    kind = type(thing)
    found = in_class(kind, "__dict__")
    if found is None or id(type(found[1])) not in _DICT_SLOTS or module_of(kind) == "builtins":
        return None
    given = found[1].__get__(thing)
    return given if type(given) is dict else None


class Own:
    """Attributes of an instance, read one by one: asking for its `__dict__` makes one, and every attribute slower for
    good. What its classes compute is not read."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def get(self, name: str, default: Any = None) -> Any:
        if in_class(type(self._thing), name) is not None:  # what lies in the class may hide it, or be taken for it
            return (instance_dict(self._thing) or {}).get(name, default)
        try:
            return object.__getattribute__(self._thing, name)
        except AttributeError:
            return default

    def __contains__(self, name: str) -> bool:
        return self.get(name, UNKNOWN) is not UNKNOWN

    def __getitem__(self, name: str) -> Any:
        return self.get(name)


def module_dict(module: Any) -> dict[str, Any] | None:
    """Names of a module. What stands for one in `sys.modules` may be anything, and load more when asked."""
    given = _module_dict(module) if issubclass(type(module), types.ModuleType) else None
    return given if type(given) is dict else None


def entry(space: dict[Any, Any], key: str | int) -> Any:
    """An item, or UNKNOWN. Not where a key is not plain: Python would compare, and run an `__eq__` of the user's. Of
    very many names the keys are taken to be plain."""
    try:
        odd = dict.__len__(space) <= KEYS and any(id(type(each)) not in _PLAIN_KEYS for each in dict.__iter__(space))
        return UNKNOWN if odd else dict.get(space, key, UNKNOWN)
    except RuntimeError:  # another thread changes it
        return UNKNOWN


def attribute(held: Any, name: str) -> Any:
    """An attribute as it lies in the instance or its classes; what would have to be computed is not read."""
    kind = type(held)
    if issubclass(kind, types.ModuleType):
        return entry(module_dict(held) or {}, name)
    looked_up, written = in_class(kind, "__getattribute__"), in_class(kind, name)
    if looked_up is None or type(looked_up[1]) is not types.WrapperDescriptorType:
        return UNKNOWN
    if written is not None and _has(written[1], "__set__", "__delete__"):
        return _slot(written[1], held)
    if issubclass(kind, type):
        written = in_class(held, name)
    else:
        own = entry(instance_dict(held) or {}, name)
        if own is not UNKNOWN:
            return own
    return UNKNOWN if written is None or _has(written[1], "__get__") else written[1]


def _has(value: Any, *names: str) -> bool:
    return any(in_class(type(value), name) is not None for name in names)


def _slot(descriptor: Any, held: Any) -> Any:
    """A value that lies in one of the `__slots__`."""
    if type(descriptor) is not types.MemberDescriptorType:
        return UNKNOWN
    try:
        return descriptor.__get__(held)
    except (AttributeError, TypeError):
        return UNKNOWN


def some_of(pairs: Iterable[tuple[Any, Any]], most: int = MANY) -> list[tuple[Any, Any]]:
    """The first items of a dict that another thread may be changing."""
    try:
        return list(itertools.islice(pairs, most))
    except RuntimeError:
        return []


def file_of(kind: type) -> str:
    """The user's file a class is written in; empty for classes of libraries."""
    file = (module_dict(sys.modules.get(module_of(kind))) or {}).get("__file__")
    return file if type(file) is str and user_code.is_user_file(file) else ""


def length(thing: Any) -> int:
    """Of a container; -1 for everything else. Never the user's own `__len__`."""
    kind = type(thing)
    for base in (list, dict, deque, set):
        if issubclass(kind, base):
            return base.__len__(thing)
    return -1


def some_items(thing: Any) -> list[tuple[Any, Any]]:
    """(place or key, element) of a container: all of a short one, of a long one the first and the latest."""
    kind = type(thing)
    if issubclass(kind, dict):
        items = dict.items(thing)
        if dict.__len__(thing) <= SHORT:
            return list(items)
        return [*itertools.islice(items, 2), *reversed(list(itertools.islice(reversed(items), 4)))]
    for base in (list, tuple, deque):
        if issubclass(kind, base):
            count = base.__len__(thing)
            places = range(count) if count <= SHORT else (0, 1, *range(count - 4, count))
            return [(place, base.__getitem__(thing, place)) for place in places]
    for unordered in (set, frozenset):
        if issubclass(kind, unordered):
            return [(None, value) for value in itertools.islice(unordered.__iter__(thing), 4)]
    return []


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Locals of a function's frame. Before 3.13 asking for them fills a dict that stays with the frame: it is emptied
    again, and never asked for where the function, or a debugger, may hold that very dict."""
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if sys.gettrace() is not None or may_hold_locals(frame.f_code):
        return {}
    given = frame.f_locals
    known = dict(given)
    given.clear()
    return known


def may_hold_locals(code: types.CodeType) -> bool:
    """It calls something that gives out that dict; `model.eval()` is not that `eval`."""
    return not _HOLDERS.isdisjoint(code.co_names) and _holds_locals(code)


@lru_cache(maxsize=512)
def _holds_locals(code: types.CodeType) -> bool:
    if len(code.co_code) > _LARGEST:
        return True
    steps = [step for step in dis.get_instructions(code) if step.argval in _HOLDERS]
    return any(step.opname in _BY_NAME or step.argval in _BY_ATTRIBUTE for step in steps)


_PLAIN_KEYS = ids(str, int, float, bool, type(None), bytes, tuple)
_DICT_SLOTS = ids(types.GetSetDescriptorType, types.MemberDescriptorType)
_BY_NAME = ("LOAD_GLOBAL", "LOAD_NAME")
_BY_ATTRIBUTE = ("_getframe", "currentframe", "f_locals")
_HOLDERS = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "f_locals"))
