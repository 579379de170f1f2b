"""What can be reached from the training's frames, by name, without running anything of the user's.

Breadth first from the locals of the frames on the stack and the globals of the user's modules; through containers,
instances, closures, bound methods, generators and iterators. Nothing is kept.
"""

from __future__ import annotations

import dis
import gc
import itertools
import sys
import types
from collections import OrderedDict, deque
from functools import partial
from time import thread_time

from . import user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

OBJECTS = 20_000
SECONDS = 0.02
DEPTH = 9
MARKED, HOOKED = 3, 400
"""How deep, and how many things, to follow what a hook shares with the training."""
SHORT = 64
"""Longer containers are looked into at their ends only."""
_ITERATORS: tuple[type, ...] = (
    itertools.cycle, itertools.chain, itertools.islice, type(itertools.tee(())[0]), map, filter, zip, enumerate,
    type(iter([])), type(iter({})), type(iter({}.values())),
)  # fmt: skip
_OURS = (__package__ or "") + "."
FAST = 0x3  # code flags: its locals are its own, not those of a module or a class
_holding: dict[types.CodeType, bool] = {}
_instance_dicts: dict[type, Any] = {}
_users: dict[str, bool] = {}  # by file of a module: whether it is the user's


class Found:
    """One thing that was reached: itself, how a person would write it, in which function, and through what."""

    __slots__ = ("depth", "file", "hook", "inside", "owner", "thing", "written")

    def __init__(self, thing: Any, written: str, inside: str, file: str, depth: int, hook: bool, owner: str) -> None:
        self.thing, self.written, self.inside, self.file = thing, written, inside, file
        self.depth, self.hook, self.owner = depth, hook, owner

    @property
    def element(self) -> bool:
        """It is reached by its place in a sequence."""
        return self.written.endswith("]") and self.written[-2].isdigit()

    @property
    def path(self) -> str:
        return f"{self.written} in {self.inside}" if self.inside else self.written


def reached(frame: FrameType, in_hooks: dict[int, Found]) -> Iterator[Found]:
    """Everything, each once, as long as time and number allow; `in_hooks` gets what a hook has by a name of its own."""
    seen: set[int] = set()
    mine, others = _frames(frame)
    for roots, share in ((_of_frames(mine), 0.6), (_of_modules(), 0.25), (_of_frames(others), 0.15)):
        yield from _breadth_first(roots, thread_time() + share * SECONDS, int(share * OBJECTS), seen, in_hooks)


def _breadth_first(
    roots: Iterator[Found], until: float, most: int, seen: set[int], in_hooks: dict[int, Found]
) -> Iterator[Found]:
    waiting = deque(roots)
    number = 0
    while waiting:
        found = waiting.popleft()
        thing = found.thing
        if type(thing) in _ATOMS:
            continue
        if id(thing) in seen:
            if found.hook and id(thing) not in in_hooks:
                _mark(found, in_hooks, MARKED)
            continue
        seen.add(id(thing))
        number += 1
        if number > most or (number & 63 == 0 and thread_time() > until):
            return
        yield found
        if found.depth < DEPTH:
            try:
                waiting.extend(_beneath(found))
            except (RuntimeError, TypeError, AttributeError):  # another thread changes it; or an odd type
                continue


def _mark(found: Found, in_hooks: dict[int, Found], deep: int) -> None:
    """A hook has it too, and what is in it: an object that the training knows by another name."""
    in_hooks[id(found.thing)] = found
    if deep and len(in_hooks) < HOOKED and type(found.thing) not in _ATOMS:
        try:
            beneath = list(_beneath(found))
        except (RuntimeError, TypeError, AttributeError):
            return
        for each in beneath:
            if id(each.thing) not in in_hooks and (length(each.thing) >= 0 or _is_users(type(each.thing))):
                _mark(each, in_hooks, deep - 1)


def _frames(frame: FrameType) -> tuple[list[FrameType], list[FrameType]]:
    """Frames of the user's own code, and the others without ours; the innermost first."""
    mine: list[FrameType] = []
    others: list[FrameType] = []
    here: FrameType | None = frame
    while here is not None:
        if not here.f_globals.get("__name__", "").startswith(_OURS):
            (mine if user_code.is_user_file(here.f_code.co_filename) else others).append(here)
        here = here.f_back
    return mine, others


def _of_frames(frames: list[FrameType]) -> Iterator[Found]:
    for each in frames:
        if each.f_code.co_flags & FAST == FAST:
            for name, value in locals_of(each).items():
                yield Found(value, name, user_code.name_of(each.f_code), each.f_code.co_filename, 0, False, "")


def _of_modules() -> Iterator[Found]:
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        file = space.get("__file__") if type(space) is dict else None
        if type(file) is not str:
            continue
        if file not in _users:
            _users[file] = user_code.is_user_file(file)
        if _users[file]:
            for name, value in list(space.items()):  # type: ignore[union-attr]  # it is a dict
                if not name.startswith("__"):
                    yield Found(value, name, file.rpartition("/")[2], file, 0, False, "")


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Locals of a function's frame. Before 3.13 asking for them fills a dict that stays with the frame: it is emptied
    again, and never asked for where the function, or a debugger, may hold that very dict."""
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if sys.gettrace() is not None or _may_hold(frame.f_code):
        return {}
    given = frame.f_locals
    known = dict(given)
    given.clear()
    return known


def _may_hold(code: types.CodeType) -> bool:
    """It calls something that gives out that dict; `model.eval()` is not that `eval`."""
    if _HOLDERS.isdisjoint(code.co_names):
        return False
    if code not in _holding:
        steps = [step for step in dis.get_instructions(code) if step.argval in _HOLDERS]
        _holding[code] = any(step.opname in _BY_NAME or step.argval in _BY_ATTRIBUTE for step in steps)
    return _holding[code]


def _beneath(at: Found) -> Iterator[Found]:
    thing, kind = at.thing, type(at.thing)  # by its type alone: `isinstance` would ask its `__class__`
    if issubclass(kind, dict):
        for key, value in ends(thing):
            yield _below(at, value, f"{at.written}[{key!r}]" if type(key) in (str, int) else f"{at.written}[…]")
    elif issubclass(kind, (list, tuple, deque)):
        for place, value in ends(thing):
            yield _below(at, value, f"{at.written}[{place}]")
    elif issubclass(kind, (set, frozenset)):
        for _, value in ends(thing):
            yield _below(at, value, f"{at.written}{{…}}")
    elif kind is types.FunctionType:
        yield from _of_function(at)
    elif kind is types.MethodType:
        yield _below(at, thing.__self__, f"{at.written}.__self__" if at.hook else at.written)
        yield _below(at, thing.__func__, at.written)
    elif kind is partial:
        for value in (thing.func, thing.args, thing.keywords):
            yield _below(at, value, at.written)
    elif kind is types.GeneratorType:
        if thing.gi_frame is not None:
            code = thing.gi_code
            for name, value in locals_of(thing.gi_frame).items():
                yield Found(value, name, user_code.name_of(code), code.co_filename, at.depth + 1, at.hook, "")
            yield Found(
                thing.gi_yieldfrom, at.written, user_code.name_of(code), code.co_filename, at.depth + 1, at.hook, ""
            )
    elif kind in _ITERATORS:
        for value in gc.get_referents(thing):
            named = f"itertools.cycle {at.written}" if kind is itertools.cycle and type(value) is list else at.written
            yield _below(at, value, named)
    elif issubclass(kind, type):
        if _is_users(thing):
            for name, value in list(vars(thing).items()):
                if length(value) >= 0:
                    yield _below(at, value, f"{thing.__name__}.{name}")
    else:
        yield from _of_instance(at)


def _of_function(at: Found) -> Iterator[Found]:
    function = at.thing
    code = function.__code__
    if not user_code.is_user_file(code.co_filename) and not at.hook:
        return
    place = f"the closure of {code.co_name}"
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            continue
        yield Found(value, name, place, code.co_filename, at.depth + 1, at.hook, "")
    for value in function.__defaults__ or ():
        yield Found(value, "a default", user_code.name_of(code), code.co_filename, at.depth + 1, at.hook, "")
    for name, value in list((function.__dict__ or {}).items()):
        yield _below(at, value, f"{code.co_name}.{name}")


def _of_instance(at: Found) -> Iterator[Found]:
    own = instance_dict(at.thing)
    kind = type(at.thing)
    if own:
        file = file_of(kind)
        for name, value in list(own.items()):
            if type(name) is not str or type(value) in _ATOMS or (type(value) in _PLAIN and not value):
                continue
            hooks = name.endswith("_hooks") and type(value) in (dict, OrderedDict)
            written = f"{name.strip('_').replace('_', ' ')} of {at.written}" if hooks else f"{at.written}.{name}"
            if name == "_modules" or name == "_parameters" or name == "_buffers":
                for part, inner in list(value.items()) if isinstance(value, dict) else ():
                    yield _below(at, inner, f"{at.written}.{part}")
                continue
            yield Found(value, written, at.inside, file or at.file, at.depth + 1, at.hook or hooks, kind.__name__)
    if _is_users(kind):
        yield Found(kind, kind.__name__, "", file_of(kind), at.depth + 1, at.hook, "")


def instance_dict(thing: Any) -> dict[str, Any] | None:
    """Its attributes, through the type's own slot for them: a `__dict__` that the user defined is not run."""
    kind = type(thing)
    if kind not in _instance_dicts:
        getter = None
        for each in kind.__mro__:
            found = each.__dict__.get("__dict__")
            if found is not None:
                getter = found.__get__ if type(found) is types.GetSetDescriptorType else None
                break
        _instance_dicts[kind] = getter if kind.__module__ != "builtins" else None
    get = _instance_dicts[kind]
    given = get(thing) if get is not None else None
    return given if type(given) is dict else None


def length(thing: Any) -> int:
    """Of a container; -1 for everything else. Never the user's own `__len__`."""
    kind = type(thing)
    for base in (list, dict, deque, set):
        if issubclass(kind, base):
            return base.__len__(thing)
    return -1


def ends(thing: Any) -> list[tuple[Any, Any]]:
    """(place or key, element) of a container: all of a short one, of a long one the first and the latest."""
    kind = type(thing)
    if issubclass(kind, dict):
        if dict.__len__(thing) <= SHORT:
            return list(dict.items(thing))
        first = list(itertools.islice(dict.items(thing), 2))
        return first + [(key, dict.__getitem__(thing, key)) for key in itertools.islice(dict.__reversed__(thing), 4)]
    for base in (list, tuple, deque):
        if issubclass(kind, base):
            count = base.__len__(thing)
            places = range(count) if count <= SHORT else (0, 1, *range(count - 4, count))
            return [(place, base.__getitem__(thing, place)) for place in places]
    for unordered in (set, frozenset):
        if issubclass(kind, unordered):
            return [(None, value) for value in itertools.islice(unordered.__iter__(thing), 4)]
    return []


def _below(at: Found, thing: Any, written: str) -> Found:
    return Found(thing, written[:200], at.inside, at.file, at.depth + 1, at.hook, at.owner)


def _is_users(kind: type) -> bool:
    return bool(file_of(kind))


def file_of(kind: type) -> str:
    """The user's file a class is written in; empty for classes of libraries."""
    module = sys.modules.get(kind.__module__) if type(kind.__module__) is str else None
    file = getattr(module, "__file__", None)
    return file if type(file) is str and user_code.is_user_file(file) else ""


_BY_NAME = ("LOAD_GLOBAL", "LOAD_NAME")
_BY_ATTRIBUTE = ("_getframe", "currentframe", "f_locals")
_HOLDERS = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "f_locals"))
_PLAIN = (dict, OrderedDict, list, tuple, set)
_ATOMS = frozenset(
    (type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(Ellipsis), types.ModuleType,
     types.CodeType, types.FrameType, types.BuiltinFunctionType, types.CellType, memoryview, type(NotImplemented))
)  # fmt: skip
