"""The one walk over what objects hold: breadth first, each thing once, each with its path, and with an end.

Nothing of the user's is run, and nothing is kept.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from math import inf
from time import thread_time
from typing import Any

from .. import objects

Parts = Iterable[tuple[str, Any]]  # how a part is written after the path of what holds it, and the part

KEY = 60  # letters of a key or a name in a path
ATOMS = objects.ids(
    type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(Ellipsis), types.ModuleType,
    types.CodeType, types.FrameType,
)  # fmt: skip
_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset, deque)


class ObjectWalk:
    """`inside` gives the parts of a thing. No more than `most` things are looked at, none further than `deep` steps
    away, none of the types in `skip`, and not for longer than `seconds`."""

    def __init__(
        self,
        inside: Callable[[Any], Parts],
        most: int,
        deep: int = 1000,
        seconds: float = inf,
        skip: frozenset[int] = ATOMS,
    ) -> None:
        self.inside, self.most, self.deep, self.seconds, self.skip = inside, most, deep, seconds, skip
        self.seen: set[int] = set()  # the id of everything that was looked at
        self.complete = True

    def over(self, roots: Parts) -> Iterator[tuple[str, Any]]:
        """Each thing with its path."""
        until = thread_time() + self.seconds
        waiting = deque((path, thing, 0) for path, thing in roots)
        while waiting:
            path, thing, depth = waiting.popleft()
            if id(thing) in self.seen or id(type(thing)) in self.skip:
                continue
            self.seen.add(id(thing))
            if len(self.seen) > self.most or (len(self.seen) & 7 == 0 and thread_time() > until):
                self.complete = False
                return
            yield path, thing
            if depth >= self.deep:
                continue
            if len(waiting) >= self.most:
                self.complete = False
                continue
            try:
                waiting.extend((path + step, part, depth + 1) for step, part in self.inside(thing))
            except (RuntimeError, TypeError, AttributeError, ValueError):  # another thread changes it; or an odd type
                continue


LOADING = tuple(f"torch.utils.data.{name}" for name in ("dataloader", "sampler", "_utils.fetch"))
"""Modules whose things are used at every batch, and hold nothing of the user's but the dataset."""


def key_text(key: Any) -> str:
    """A key as a person would write it in brackets."""
    if type(key) is str:
        return repr(key[:KEY])
    return str(key) if type(key) is int and key.bit_length() < 64 else "…"


def attributes(thing: Any, most: int = objects.MANY) -> list[tuple[str, Any]]:
    """The first of its own attributes, with their names."""
    first = objects.some_of((objects.instance_dict(thing) or {}).items(), most)
    return [(name, value) for name, value in first if type(name) is str]


def held_by(thing: Any, most: int = objects.MANY) -> Iterator[tuple[str, Any]]:
    """Elements of a container, attributes, and what functions, methods and generators carry with them."""
    kind = type(thing)
    if issubclass(kind, dict):
        for key, value in objects.some_of(dict.items(thing), most):
            yield f"[{key_text(key)}]", value
    elif issubclass(kind, _SEQUENCES):
        base = next(base for base in _SEQUENCES if issubclass(kind, base))
        for place, value in enumerate(islice(base.__iter__(thing), most)):
            yield f"[{place}]", value
    elif kind is types.FunctionType:
        yield from (("", value) for value in (*(thing.__closure__ or ()), *(thing.__defaults__ or ())))
    elif kind is types.CellType:
        yield "", thing.cell_contents
    elif kind is types.MethodType:
        yield ".__self__", thing.__self__
    elif kind is partial:
        yield ".func", thing.func
        yield "", thing.args
        yield "", thing.keywords
    elif kind is types.GeneratorType:
        if thing.gi_frame is not None:
            yield from objects.locals_of(thing.gi_frame).items()
    elif issubclass(kind, type):
        if objects.file_of(thing):
            yield from ((f".{name}", value) for name, value in objects.some_of(objects.class_dict(thing).items(), most))
    elif objects.module_of(kind) in LOADING:  # asking for all they hold would make them slower for good
        yield ".dataset", objects.Own(thing).get("dataset")
    else:
        yield from ((f".{name[:KEY]}", value) for name, value in attributes(thing, most))
