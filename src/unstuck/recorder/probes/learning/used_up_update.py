"""An update that goes through an iterator which an earlier loop has used up: `self.params = model.parameters()`.

The iterator is found among what the training's frames hold, and asked nothing: a generator that ended has no frame any
more, other iterators let go of what they went through. The loop of the update is read from the source.
"""

from __future__ import annotations

import ast
import gc
import itertools
from collections.abc import Iterable
from types import FrameType, GeneratorType
from typing import Any

import torch

from ... import objects, user_code
from ...records.learning import LostUpdate
from ..object_walk import ObjectWalk, held_by
from . import lost_update, naming, script_lines

MAX_VISITED, MAX_DEPTH, MAX_INSIDE, SECONDS = 3000, 4, 64, 0.02  # of the walk from the frames
MAX_LAYERS = 4  # of iterators over iterators
LETS_GO = objects.ids(type(iter([])), type(iter(())), type(iter({})), type(iter({}.values())), itertools.chain)
PASSES_ON = objects.ids(filter, map, zip, enumerate)  # at their end with what they go through
COPIED_BY = ("list", "tuple", "iter", "filter", "reversed")


def find(spent: list[str] | None, files: Iterable[str]) -> LostUpdate | None:
    for file in files if spent else ():
        tree = script_lines.parsed(file)
        for loop in [node for node in ast.walk(tree) if isinstance(node, ast.For)] if tree is not None else ():
            name = _updates_through(loop, spent or [])
            if name is not None and tree is not None:
                line = _assigned(tree, name) or loop.lineno
                site = user_code.absolute(file), line, script_lines.function_at(file, line)
                return LostUpdate(site=site, how="used_up", loop=loop.lineno, name=name)
    return None


def spent_names(frame: FrameType) -> list[str]:
    """How the source calls the iterators that are at their end: `params`, or `.params` of whatever holds it."""
    walk = ObjectWalk(_inside, MAX_VISITED, MAX_DEPTH, SECONDS)
    paths = [path.rpartition(".") for path, thing in walk.over(naming.named_in_frames(frame)) if is_spent(thing)]
    return [f".{last}" if before else last for before, _, last in paths if last.isidentifier()]


def _inside(thing: Any) -> Iterable[tuple[str, Any]]:
    kind = type(thing)
    return () if issubclass(kind, torch.Tensor | torch.nn.Module) else held_by(thing, MAX_INSIDE)


def is_spent(thing: Any, layers: int = MAX_LAYERS) -> bool:
    """An iterator that is at its end."""
    kind = type(thing)
    if kind is GeneratorType:
        return thing.gi_frame is None
    if id(kind) in LETS_GO:
        return not gc.get_referents(thing)
    if id(kind) not in PASSES_ON or not layers:
        return False
    parts = [part for each in gc.get_referents(thing) for part in (each if type(each) is tuple else (each,))]
    return any(is_spent(part, layers - 1) for part in parts)


def _updates_through(loop: ast.For, spent: Iterable[str]) -> str | None:
    """The name that it goes through, if that is spent and the loop writes gradients into its elements."""
    sources = [(name, _written(source)) for name, source in lost_update.gone_through(loop.target, loop.iter)]
    names = {element: written for element, written in sources if written in spent}
    graded = any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(loop))
    if not names or not (graded or len(sources) > len(names)):
        return None
    for part in ast.walk(loop):
        element = _written_into(part)
        if element in names:
            return names[element]
    return None


def _written(source: ast.expr) -> str:
    while isinstance(source, ast.Call) and script_lines.called(source) in COPIED_BY and source.args:
        source = source.args[-1]
    if isinstance(source, ast.Attribute):
        return f".{source.attr}"
    return source.id if isinstance(source, ast.Name) else ""


def _written_into(node: ast.AST) -> str | None:
    """The name whose tensor, not its gradient, this changes in place."""
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        target = node.func.value if method.endswith("_") and not method.startswith("_") else None
    elif isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == "data":
        target = node.targets[0]
    while isinstance(target, ast.Attribute | ast.Call):
        if isinstance(target, ast.Attribute) and target.attr == "grad":
            return None
        target = target.func if isinstance(target, ast.Call) else target.value
    return target.id if isinstance(target, ast.Name) else None


def _assigned(tree: ast.Module, name: str) -> int | None:
    """The only line that gives the name its value."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    lines = [node.lineno for node in made if any(_written(target) == name for target in node.targets)]
    return lines[0] if len(lines) == 1 else None
