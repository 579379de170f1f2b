"""Names of modules and parameters, as the training's own frames reach them: `model.fc1.weight`, `self.net`, `nets[2]`.

A walk over names, lists, dicts and instances that is bounded in depth and number; nothing of the user's is run.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import torch

from ... import objects
from . import layers, sites

THINGS = 3000
"""Visited in one walk."""
FRAMES = 24
DEEP = 4
INSIDE = 64
"""Elements of a list, attributes of an instance."""
PARAMETERS = 5000
CALLED = 32
"""Outermost modules seen called that are remembered."""
TORCHS_OWN = ("_modules", "_parameters", "_buffers")
PLAIN = objects.ids(
    type(None), bool, int, float, complex, str, bytes, range, slice, type, ModuleType, FunctionType, BuiltinFunctionType
)


class Names:
    """Parameters by identity, with the module each belongs to."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self._roots: list[tuple[str, weakref.ref[Any]]] = []
        self._called: list[weakref.ref[Any]] = []
        """Outermost modules that were seen called, under whatever name."""
        self.stale = True
        """There is a module that was not there when they were found."""

    @property
    def roots(self) -> list[tuple[str, Any]]:
        """Outermost modules that are still there; none is kept alive by us."""
        return [(name, module) for name, ref in self._roots if (module := ref()) is not None]

    def name(self, parameter: Any) -> str:
        return self.names.get(id(parameter), "")

    def modules(self) -> dict[int, str]:
        """Names of all modules within the roots, by identity."""
        found: dict[int, str] = {}
        for name, root in self.roots:
            for path, module in layers.tree(root, name):
                found.setdefault(id(module), path)
        return found

    def saw(self, module: Any) -> None:
        """A module was called that no other one called."""
        if len(self._called) < CALLED and not any(ref() is module for ref in self._called):
            self._called.append(weakref.ref(module))
            self.stale = self.stale or id(module) not in self.modules()

    def find(self, frame: FrameType | None) -> None:
        """Look again, from these frames: modules that no other one found has are roots."""
        self.stale = False
        modules, tensors = _walk(frame)
        for ref in self._called:
            module = ref()
            if module is not None:
                modules.setdefault(id(module), (objects.class_name(type(module)), module))
        within = {id(part) for _, module in modules.values() for _, part in layers.tree(module)[1:]}
        self.names, self.kinds, self._roots = {}, {}, []
        for key, (name, module) in modules.items():
            if key not in within:
                self._add(name, module)
        for name, tensor in tensors:
            if len(self.names) < PARAMETERS:
                self.names.setdefault(id(tensor), name)

    def _add(self, name: str, root: Any) -> None:
        found = [(path, part, own) for path, part in layers.tree(root, name) if (own := layers.named(part))]
        if found:
            self._roots.append((name, weakref.ref(root)))
        for path, part, own in found:
            for attribute, parameter in own.items():
                if len(self.names) < PARAMETERS:
                    self.names.setdefault(id(parameter), f"{path}.{attribute}")
                    self.kinds.setdefault(id(parameter), objects.class_name(type(part)))


def _walk(frame: FrameType | None) -> tuple[dict[int, tuple[str, Any]], list[tuple[str, Any]]]:
    """Modules by identity, and tensors that are trained and have a name of their own; nearest names first."""
    modules: dict[int, tuple[str, Any]] = {}
    tensors: list[tuple[str, Any]] = []
    waiting = deque((name, value, 0) for name, value in _held(frame))
    seen: set[int] = set()
    while waiting and len(seen) < THINGS:
        name, thing, depth = waiting.popleft()
        kind = type(thing)
        if id(kind) in PLAIN or id(thing) in seen:
            continue
        seen.add(id(thing))
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            if thing.requires_grad and thing.is_leaf and (kind is torch.Tensor or not depth):
                tensors.append((name, thing))  # a list of parameters is no name for them
        elif issubclass(kind, torch.nn.Module):
            modules[id(thing)] = name, thing
            for path, part in layers.tree(thing, name):
                if part is thing or id(part) not in seen:
                    seen.add(id(part))
                    waiting.extend(_within(path, part, 2, THINGS - len(waiting)))
        elif depth < DEEP and not issubclass(kind, torch.optim.Optimizer):
            waiting.extend(_within(name, thing, depth + 1, THINGS - len(waiting)))
    return modules, tensors


def _held(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """What the user's frames have, innermost first: the names of its file, then its own."""
    files: set[int] = set()
    for here in islice(sites.user_frames(frame), FRAMES):
        if id(here.f_globals) not in files:
            files.add(id(here.f_globals))
            yield from ((name, value) for name, value in list(here.f_globals.items()) if not name.startswith("__"))
        if sites.is_function(here):
            yield from sites.names(here).items()


def _within(name: str, thing: Any, depth: int, room: int) -> list[tuple[str, Any, int]]:
    inside = [(at, inner) for at, inner in _in(thing) if id(type(inner)) not in PLAIN]
    return [(f"{name}{at}", inner, depth) for at, inner in inside[: max(0, room)]]


def _in(thing: Any) -> list[tuple[str, Any]]:
    """One step into a list, a dict or an instance."""
    kind = type(thing)
    if kind is list or kind is tuple:
        return [(f"[{place}]", inner) for place, inner in enumerate(thing[:INSIDE])]
    if kind is dict or kind is OrderedDict:
        items = objects.some_of(dict.items(thing), INSIDE)
        return [(f"[{key!r}]", inner) for key, inner in items if type(key) is str or type(key) is int]
    own = objects.some_of((objects.instance_dict(thing) or {}).items(), INSIDE)
    named = [(name, inner) for name, inner in own if type(name) is str and not name.startswith("__")]
    return [(f".{name}", inner) for name, inner in named if name not in TORCHS_OWN and not name.endswith("_hooks")]
