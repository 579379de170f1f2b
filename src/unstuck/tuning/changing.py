"""Does the script change its dataset while it trains? Read from its source: workers that live on would not see it."""

from __future__ import annotations

import ast
import os
import sys

from ..recorder import objects
from ..recorder.probes.data.sample_code import GIVING, attributes, names_read, package_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BUILDING = ("__init__", "__post_init__", "__setstate__", "__new__")


def changed_between_passes(dataset: Any) -> str:
    """An attribute that its samples depend on and that is set in a loop, or by what is called in one, with the line;
    empty if there is none."""
    names = names_read(dataset)
    held = names & set(_held(dataset))
    for path in _files(dataset) if held else ():
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            continue
        seen = Stores(held, {*BUILDING, *GIVING, *names})
        seen.visit(tree)
        for name, line, function in seen.stores:
            if function is None or function in seen.called:
                return f"{name} ({os.path.basename(path)}:{line})"
    return ""


def _held(dataset: Any, depth: int = 2) -> list[str]:
    """Names of its attributes, and of what it holds."""
    found = []
    for name, value in attributes(dataset):
        found.append(name)
        if depth and package_of(type(value)) not in ("builtins", "torch", "numpy"):
            found += _held(value, depth - 1)
    return found


def _files(dataset: Any) -> list[str]:
    """The script, and where the classes of the dataset are."""
    things = (dataset, *(value for _, value in attributes(dataset)))
    modules = ["__main__", *(objects.module_of(kind) for thing in things for kind in objects.mro_of(type(thing)))]
    found = [getattr(sys.modules.get(name), "__file__", None) for name in modules]
    return list(dict.fromkeys(path for path in found if path and os.sep + "torch" + os.sep not in path))


class Stores(ast.NodeVisitor):
    """`stores`: name, line and, outside a loop, the function it is in; `called`: functions called in a loop."""

    def __init__(self, names: set[str], reading: set[str]) -> None:
        self._names, self._reading = names, reading
        self._function: str | None = None
        self._loops = 0
        self.stores: list[tuple[str, int, str | None]] = []
        self.called: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = self._function, self._loops
        self._function, self._loops = node.name, 0
        self.generic_visit(node)
        self._function, self._loops = outside

    def visit_For(self, node: ast.For | ast.While) -> None:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    visit_While = visit_For

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if self._loops:
            self.called.add(name)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        stored = isinstance(node.ctx, ast.Store) and node.attr in self._names and not self._of_reading(node)
        if stored and (self._loops or self._function is not None):
            self.stores.append((node.attr, node.lineno, None if self._loops else self._function))
        self.generic_visit(node)

    def _of_reading(self, node: ast.Attribute) -> bool:
        """The dataset builds itself, or notes something as it gives a sample: in each worker for itself."""
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        return own and self._function in self._reading
