"""Names of modules and parameters, as the training's own frames reach them: `model.fc1.weight`, `self.net`, `nets[2]`.

Walks over names, lists, dicts and instances that are bounded in depth and number, and over modules by their own dicts:
nothing of the user's is run.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from types import BuiltinFunctionType, CellType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import torch

from ... import objects
from ..object_walk import ObjectWalk, held_by
from . import script_lines

MAX_MODULES = 4000
MAX_VISITED = 3000  # objects, in one walk from the frames
MAX_FRAMES = 24
MAX_DEPTH = 5  # steps from a name: `self.trainer.model.nets[0]`
MAX_INSIDE = 64  # elements of a list, attributes of an instance
MAX_PARAMETERS = 5000
MANY_PRIVATE = 2  # attributes on the way, with which it is nobody's name any more
MAX_CALLED = 32  # outermost modules seen called that are remembered
OF_TORCH = ("_modules", "_parameters", "_buffers")
PLAIN = objects.ids(
    type(None), bool, int, float, complex, str, bytes, range, slice, type, ModuleType, FunctionType, MethodType,
    BuiltinFunctionType, CellType, GeneratorType,
)  # fmt: skip


# --- modules within modules ------------------------------------------------------------------------------------------


def table(module: Any, name: str) -> dict[str, Any]:
    """Of a module its own `_modules`, `_parameters` or `_buffers`."""
    found = (objects.instance_dict(module) or {}).get(name)
    if type(found) is not dict and type(found) is not OrderedDict:
        return {}
    return {key: value for key, value in objects.some_of(dict.items(found), MAX_MODULES) if value is not None}


def own_parameters(module: Any) -> list[Any]:
    return list(table(module, "_parameters").values())


def all_parameters(module: Any) -> list[Any]:
    """Its own and those of all modules within."""
    return [parameter for _, part in tree(module) for parameter in own_parameters(part)]


def is_training(module: Any) -> bool:
    return (objects.instance_dict(module) or {}).get("training") is not False


def tree(module: Any, name: str = "") -> list[tuple[str, Any]]:
    """(name, module) of it and all within, each once."""
    found, seen = [(name, module)], {id(module)}
    for path, outer in found:  # it grows
        for part, inner in table(outer, "_modules").items():
            if id(inner) not in seen and len(found) < MAX_MODULES:
                seen.add(id(inner))
                found.append((f"{path}.{part}", inner))
    return found


# --- names -----------------------------------------------------------------------------------------------------------


class Names:
    """Parameters by identity, with the module each belongs to."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self._roots: list[tuple[str, weakref.ref[Any]]] = []
        self._called: list[weakref.ref[Any]] = []  # outermost modules that were seen called, under whatever name
        self.stale = True  # there is a module that was not there when they were found

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
            for path, module in tree(root, name):
                found.setdefault(id(module), path)
        return found

    def makers(self, path: str) -> Iterator[tuple[type, str]]:
        """Classes of the modules on the way to a layer, each with the attribute that leads on."""
        for root, module in self.roots:
            if not path.startswith(f"{root}."):
                continue
            for part in path[len(root) + 1 :].split("."):
                yield type(module), part
                module = table(module, "_modules").get(part)
                if module is None:
                    break

    def saw(self, module: Any) -> None:
        """A module was called that no other one called."""
        if len(self._called) < MAX_CALLED and not any(ref() is module for ref in self._called):
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
        within = {id(part) for _, module in modules.values() for _, part in tree(module)[1:]}
        self.names, self.kinds, self._roots = {}, {}, []
        for key, (name, module) in modules.items():
            if key not in within:
                # The private ways of a library say nothing: `trainer._data_connector._datahook_selector.model`.
                hidden = name.count("._") >= MANY_PRIVATE
                self._add(objects.class_name(type(module)) if hidden else name, module)
        for name, tensor in tensors:
            if len(self.names) < MAX_PARAMETERS:
                self.names.setdefault(id(tensor), name)

    def _add(self, name: str, root: Any) -> None:
        found = [(path, part, own) for path, part in tree(root, name) if (own := table(part, "_parameters"))]
        if found:
            self._roots.append((name, weakref.ref(root)))
        for path, part, own in found:
            for attribute, parameter in own.items():
                if len(self.names) < MAX_PARAMETERS:
                    self.names.setdefault(id(parameter), f"{path}.{attribute}")
                    self.kinds.setdefault(id(parameter), objects.class_name(type(part)))


def _walk(frame: FrameType | None) -> tuple[dict[int, tuple[str, Any]], list[tuple[str, Any]]]:
    """Modules by identity, and tensors that are trained and have a name of their own; nearest names first."""
    modules: dict[int, tuple[str, Any]] = {}
    found: list[tuple[str, Any]] = []

    def inside(thing: Any) -> list[tuple[str, Any]]:
        kind = type(thing)
        if kind is torch.Tensor or kind is torch.nn.Parameter or issubclass(kind, torch.optim.Optimizer):
            return []
        parts = tree(thing) if issubclass(kind, torch.nn.Module) else [("", thing)]
        walk.seen.update(id(part) for _, part in parts)
        return [(f"{path}{step}", inner) for path, part in parts for step, inner in _held_by(part)]

    walk = ObjectWalk(inside, MAX_VISITED, MAX_DEPTH, skip=PLAIN)
    for name, thing in walk.over(named_in_frames(frame)):
        kind = type(thing)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            if thing.requires_grad and thing.is_leaf and (kind is torch.Tensor or name.isidentifier()):
                found.append((name, thing))  # a list of parameters is no name for them
        elif issubclass(kind, torch.nn.Module):
            modules[id(thing)] = name, thing
    return modules, found


def _held_by(thing: Any) -> Iterator[tuple[str, Any]]:
    """What it holds, less what torch keeps in a module."""
    for step, part in held_by(thing, MAX_INSIDE):
        if step[1:] not in OF_TORCH and not step.startswith(".__") and not step.endswith("_hooks"):
            yield step, part


def named_in_frames(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """What the user's frames have, innermost first: the names of its file, then its own."""
    files: set[int] = set()
    for here in islice(script_lines.user_frames(frame), MAX_FRAMES):
        if id(here.f_globals) not in files:
            files.add(id(here.f_globals))
            yield from ((name, value) for name, value in list(here.f_globals.items()) if not name.startswith("__"))
        if script_lines.is_function(here):
            yield from script_lines.names_in(here).items()
