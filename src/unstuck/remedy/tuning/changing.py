"""Does the script change its data set while it trains? Read from its source: workers that live on would not see it."""

from __future__ import annotations

import ast
import os
import sys

from ...recorder.probes.data.dataset_state import GIVING, names_read

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
    own = getattr(dataset, "__dict__", None)
    if type(own) is not dict:
        return []
    found = [name for name in list(own)[:64] if isinstance(name, str)]
    for value in list(own.values())[:64] if depth else ():
        if type(value).__module__.partition(".")[0] not in ("builtins", "torch", "numpy"):
            found += _held(value, depth - 1)
    return found


def _files(dataset: Any) -> list[str]:
    """The script, and where the classes of the data set are."""
    held = list((getattr(dataset, "__dict__", None) or {}).values())[:64]
    modules = ["__main__", *(kind.__module__ for thing in (dataset, *held) for kind in type(thing).__mro__)]
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
        """The data set builds itself, or notes something as it gives a sample: in each worker for itself."""
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        return own and self._function in self._reading
