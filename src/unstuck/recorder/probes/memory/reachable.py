"""What can be reached from the training's frames, by name, without running anything of the user's.

Breadth first from the locals of the frames on the stack and the globals of the user's modules; through containers,
instances, closures, bound methods, generators and iterators. Nothing is kept.
"""

from __future__ import annotations

import gc
import itertools
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Iterator
from functools import _lru_cache_wrapper, lru_cache, partial
from itertools import islice
from time import thread_time
from types import FrameType
from typing import Any

from ... import user_code
from ...objects import (
    FAST,
    MANY,
    class_dict,
    class_name,
    file_of,
    ids,
    length,
    locals_of,
    module_dict,
    some_items,
    some_of,
)
from ..object_walk import ATOMS, KEY, attributes, key_text

MOST_OBJECTS, MOST_SECONDS, MOST_DEPTH = 20_000, 0.02, 9
HOOK_DEPTH, MOST_IN_HOOKS = 3, 400  # how far, and how many things, to follow what a hook shares with the training
FRAMES = 40  # of the inner and of the outer end of a deep stack
MOST_NAMES = 2000  # globals of one module
CACHE = "the cache of "
_OURS = (__package__ or "").partition(".probes")[0] + "."


class Reached:
    """One thing that was reached: itself, how a person would write it, in which function and file, through a hook."""

    __slots__ = ("depth", "file", "hook", "inside", "thing", "written")

    def __init__(self, thing: Any, written: str, inside: str, file: str, depth: int = 0, hook: bool = False) -> None:
        self.thing, self.written, self.inside, self.file = thing, written[:200], inside, file
        self.depth, self.hook = depth, hook

    def below(self, thing: Any, written: str, inside: str | None = None, file: str = "", hook: bool = False) -> Reached:
        inside = self.inside if inside is None else inside
        return Reached(thing, written, inside, file or self.file, self.depth + 1, self.hook or hook)

    @property
    def element(self) -> bool:
        """It is reached by its place in a sequence."""
        return self.written.endswith("]") and self.written[-2].isdigit()

    @property
    def path(self) -> str:
        return f"{self.written} in {self.inside}" if self.inside else self.written


def reached(frame: FrameType, in_hooks: dict[int, Reached]) -> Iterator[Reached]:
    """Everything, each once, as long as time and number allow; `in_hooks` gets what a hook has by a name of its own."""
    seen: set[int] = set()
    mine, others = _frames(frame)
    for roots, share in ((_of_frames(mine), 0.6), (_of_modules(), 0.25), (_of_frames(others), 0.15)):
        until, most = thread_time() + share * MOST_SECONDS, int(share * MOST_OBJECTS)
        waiting = deque(islice(roots, most))
        number = 0
        while waiting:
            here = waiting.popleft()
            if id(type(here.thing)) in _ATOMS:
                continue
            if id(here.thing) in seen:
                if here.hook and id(here.thing) not in in_hooks:
                    _mark(here, in_hooks, HOOK_DEPTH)
                continue
            seen.add(id(here.thing))
            number += 1
            if number > most or (number & 15 == 0 and thread_time() > until):
                break
            yield here
            if here.depth < MOST_DEPTH and len(waiting) < MOST_OBJECTS:
                waiting.extend(_all_beneath(here))


def _all_beneath(at: Reached) -> list[Reached]:
    try:
        return list(_beneath(at))
    except (RuntimeError, TypeError, AttributeError, LookupError):  # another thread changes it; or an odd type
        return []


def _mark(at: Reached, in_hooks: dict[int, Reached], deep: int) -> None:
    """A hook has it too, and what is in it: an object that the training knows by another name."""
    in_hooks[id(at.thing)] = at
    if not deep or len(in_hooks) >= MOST_IN_HOOKS or id(type(at.thing)) in _ATOMS:
        return
    for part in _all_beneath(at):
        if id(part.thing) not in in_hooks and (length(part.thing) >= 0 or file_of(type(part.thing))):
            _mark(part, in_hooks, deep - 1)


def _frames(frame: FrameType) -> tuple[list[FrameType], list[FrameType]]:
    """Frames of the user's own code, and the others without ours; the innermost first."""
    mine: list[FrameType] = []
    others: list[FrameType] = []
    for caller in user_code.frames(frame):
        name = dict.get(caller.f_globals, "__name__")
        if type(name) is not str or not name.startswith(_OURS):
            (mine if _is_user_file(caller.f_code.co_filename) else others).append(caller)
    return _both_ends(mine), _both_ends(others)


def _both_ends(frames: list[FrameType]) -> list[FrameType]:
    return frames if len(frames) <= 2 * FRAMES else frames[:FRAMES] + frames[-FRAMES:]


def _of_frames(frames: list[FrameType]) -> Iterator[Reached]:
    for frame in frames:
        code = frame.f_code
        if code.co_flags & FAST == FAST:
            for name, value in locals_of(frame).items():
                yield Reached(value, name, user_code.name_of(code), code.co_filename)


def _of_modules() -> Iterator[Reached]:
    for module in list(sys.modules.values()):
        space = module_dict(module)
        file = None if space is None else space.get("__file__")
        if space is None or type(file) is not str or not _is_user_file(file):
            continue
        for name, value in some_of(space.items(), MOST_NAMES):
            if type(name) is str and not name.startswith("__"):
                yield Reached(value, name, file.rpartition("/")[2], file)


def _beneath(at: Reached) -> Iterator[Reached]:
    kind = type(at.thing)  # by its type alone: `isinstance` would ask its `__class__`
    if issubclass(kind, (dict, list, tuple, deque, set, frozenset)):
        yield from _of_container(at)
    elif kind is types.FunctionType:
        yield from _of_function(at)
    elif kind is types.GeneratorType:
        yield from _of_generator(at)
    elif issubclass(kind, type):
        if file_of(at.thing):
            for name, value in some_of(class_dict(at.thing).items()):
                if length(value) >= 0 or type(value) is _lru_cache_wrapper:
                    yield at.below(value, f"{class_name(at.thing)}.{_short(name)}")
    elif kind is _lru_cache_wrapper:
        for value in gc.get_referents(at.thing):
            if type(value) is dict and value is not at.thing.__dict__:
                yield at.below(value, f"{CACHE}{at.written}")
    elif id(kind) in _CALLABLES or id(kind) in _ITERATORS:
        yield from _of_wrapper(at)
    else:
        yield from _of_instance(at)


def _of_container(at: Reached) -> Iterator[Reached]:
    unordered = issubclass(type(at.thing), (set, frozenset))
    for key, value in some_items(at.thing):
        yield at.below(value, f"{at.written}{{…}}" if unordered else f"{at.written}[{key_text(key)}]")


def _short(name: Any) -> str:
    return name[:KEY] if type(name) is str else "…"


def _of_wrapper(at: Reached) -> Iterator[Reached]:
    thing, kind = at.thing, type(at.thing)
    if kind is types.MethodType:
        yield at.below(thing.__self__, f"{at.written}.__self__" if at.hook else at.written)
        yield at.below(thing.__func__, at.written)
    elif kind is partial:
        for value in (thing.func, thing.args, thing.keywords):
            yield at.below(value, at.written)
    else:
        for value in gc.get_referents(thing):
            named = f"itertools.cycle {at.written}" if kind is itertools.cycle and type(value) is list else at.written
            yield at.below(value, named)


def _of_generator(at: Reached) -> Iterator[Reached]:
    if at.thing.gi_frame is not None:
        code = at.thing.gi_code
        for name, value in (*locals_of(at.thing.gi_frame).items(), (at.written, at.thing.gi_yieldfrom)):
            yield at.below(value, name, user_code.name_of(code), code.co_filename)


def _of_function(at: Reached) -> Iterator[Reached]:
    function = at.thing
    code = function.__code__
    if not _is_user_file(code.co_filename) and not at.hook:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            continue
        yield at.below(value, name, f"the closure of {code.co_name}", code.co_filename)
    for value in (function.__defaults__ or ())[:MANY]:
        yield at.below(value, "a default", user_code.name_of(code), code.co_filename)
    for name, value in some_of(function.__dict__.items()):
        yield at.below(value, f"{code.co_name}.{_short(name)}")


def _of_instance(at: Reached) -> Iterator[Reached]:
    kind = type(at.thing)
    file = file_of(kind)
    for name, value in attributes(at.thing):
        if id(type(value)) in _ATOMS or (id(type(value)) in _PLAIN and not value):
            continue
        if name in _PARTS and issubclass(type(value), dict):
            for part, inner in some_of(dict.items(value)):
                yield at.below(inner, f"{at.written}.{_short(part)}")
            continue
        hooks = name.endswith("_hooks") and id(type(value)) in _HOOKS
        written = f"{name.strip('_').replace('_', ' ')} of {at.written}" if hooks else f"{at.written}.{name[:KEY]}"
        yield at.below(value, written, file=file, hook=hooks)
    if file:
        yield at.below(kind, class_name(kind), "", file)


_is_user_file = lru_cache(maxsize=8192)(user_code.is_user_file)
_PARTS = ("_modules", "_parameters", "_buffers")  # of a module, which a person names without them
_HOOKS = ids(dict, OrderedDict)
_PLAIN = ids(dict, OrderedDict, list, tuple, set)
_CALLABLES = ids(types.MethodType, partial)
_ITERATORS = ids(
    itertools.cycle, itertools.chain, itertools.islice, type(itertools.tee(())[0]), map, filter, zip, enumerate,
    type(iter([])), type(iter({})), type(iter({}.values())),
)  # fmt: skip
_ATOMS = ATOMS | ids(types.BuiltinFunctionType, types.CellType, memoryview, type(NotImplemented))
