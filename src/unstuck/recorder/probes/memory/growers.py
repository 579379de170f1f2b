"""Which statement makes a container grow, as far as the source says it. Parsed on request, once a file."""

from __future__ import annotations

import ast
from functools import lru_cache

from ... import user_code
from ..loops.parsed_source import tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...records import Site

_CALLS = frozenset(
    ("append", "appendleft", "extend", "insert", "add", "update", "setdefault", "put", "push", "store", "cycle")
)


def statement(file: str, name: str, function: str = "") -> Site | None:
    """Where something is put into `name`; in `function`, if it is done there."""
    found = _table(file).get(name, ())
    short = function.rpartition(".")[2]
    best = next(((line, at) for line, at in found if at.rpartition(".")[2] == short), found[0] if found else None)
    return None if best is None else (user_code.absolute(file), best[0], best[1] or "<module>")


@lru_cache(maxsize=32)
def _table(file: str) -> dict[str, list[tuple[int, str]]]:
    table: dict[str, list[tuple[int, str]]] = {}
    for name, line, function in _statements(file):
        table.setdefault(name, []).append((line, function))
    return table


def _statements(file: str) -> Iterator[tuple[str, int, str]]:
    tree = tree_of(file)
    if tree is None:
        return
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, function = waiting.pop()
        inside = function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = f"{function}.{node.name}" if function else node.name
        for name in _grown_by(node):
            yield name, node.lineno, function  # type: ignore[attr-defined]  # statements and calls have one
        waiting.extend((child, inside) for child in ast.iter_child_nodes(node))


def _grown_by(node: ast.AST) -> Iterator[str]:
    """Names that the node puts something into."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
            yield _last(node.func.value)
        called = _last(node.func)
        if called == "cycle" or (called.startswith("register_") and called.endswith("_hook")):
            yield called
    elif isinstance(node, ast.AugAssign):
        yield _last(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) or _is_in(_last(target), node.value):
                yield _last(target)


def _is_in(name: str, value: ast.expr) -> bool:
    """`history = history + [loss]`, `history = [*history, loss]`."""
    if not isinstance(value, (ast.BinOp, ast.List)):
        return False
    return any(_last(part) == name for part in ast.walk(value) if isinstance(part, (ast.Name, ast.Attribute)))


def _last(node: ast.AST) -> str:
    """The name closest to what is grown: history of `self.history["loss"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
