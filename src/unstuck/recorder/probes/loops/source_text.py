"""What was read from source, kept for a while: the text of a node, a name as an expression, what a function stores."""

from __future__ import annotations

import ast
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Function = ast.FunctionDef | ast.AsyncFunctionDef
    Stores = dict[str, list[tuple[Function, ast.stmt]]]

NODES = 120
"""Larger expressions are neither shown nor worked out: nobody writes one by hand."""
LONGEST = 300
"""Letters of a text."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_STORING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith)


@lru_cache(maxsize=8192)
def text(node: ast.AST) -> str:
    """As it is written, in one line. Two nodes that are too large to be shown have different texts."""
    if isinstance(node, ast.Name):
        return node.id[:LONGEST]
    written = ast.unparse(node) if is_small(node) else ""
    if written and len(written) <= LONGEST:
        return written
    place = f"line {getattr(node, 'lineno', 0)}, column {getattr(node, 'col_offset', 0)}"
    return f"{written[:60]}… ({place})"


@lru_cache(maxsize=8192)
def is_small(node: ast.AST) -> bool:
    waiting, seen = [node], 0
    while waiting:
        each = waiting.pop()
        seen += 1
        if seen > NODES or (isinstance(each, ast.Constant) and _is_long(each.value)):
            return False
        waiting.extend(ast.iter_child_nodes(each))
    return True


def _is_long(value: object) -> bool:
    if isinstance(value, (str, bytes)):
        return len(value) > LONGEST
    return isinstance(value, int) and value.bit_length() > 1000


@lru_cache(maxsize=4096)
def first_line(statement: ast.stmt) -> str:
    """The statement, or its head where others are within it."""
    if isinstance(statement, _COMPOUND):
        statement = type(statement)(**{**vars(statement), "body": [], "orelse": []})
    return text(statement).partition("\n")[0][:120]


@lru_cache(maxsize=2048)
def expression(name: str) -> ast.expr:
    try:
        return ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError):  # the text of something that is too large to be shown
        return ast.Name(name, ast.Load())


@lru_cache(maxsize=4096)
def names(node: ast.AST) -> tuple[str, ...]:
    """Names, attributes and items an expression reads, as written; not those it calls, but what these are given."""
    found: list[str] = []
    waiting: list[ast.AST] = [node] if is_small(node) else []
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ast.Call):
            waiting[:0] = [*each.args, *(keyword.value for keyword in each.keywords)]
        elif isinstance(each, (ast.Name, ast.Attribute, ast.Subscript)):
            found.append(text(each))
        else:
            waiting[:0] = ast.iter_child_nodes(each)
    return tuple(dict.fromkeys(found))


def calls(node: ast.AST) -> bool:
    return not is_small(node) or any(isinstance(each, ast.Call) for each in ast.walk(node))


def last_part(node: ast.AST) -> str:
    """The attribute or the key, whatever its owner is called: `.step` of self.step, `['step']` of state['step']."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"[{text(node.slice)}]" if isinstance(node.slice, ast.Constant) else "[]"
    return node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=32)
def stores(tree: ast.Module) -> Stores:
    """Statements in functions of the file, by the last part of what they store into: attributes, items, and names that
    the function shares with others (`global`, `nonlocal`)."""
    found: Stores = {}
    for function in ast.walk(tree):
        if isinstance(function, _FUNCTIONS):
            for part, statement in _of_function(function):
                found.setdefault(part, []).append((function, statement))
    return found


@lru_cache(maxsize=1024)
def stored_parts(function: Function) -> frozenset[str]:
    return frozenset(part for part, _ in _of_function(function))


def _of_function(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    shared: set[str] = set()
    stored: list[tuple[str, ast.stmt]] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            shared.update(node.names)
        elif isinstance(node, _STORING):
            stored += [(last_part(target), node) for target in _targets(node)]
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            inside = (ast.stmt, ast.ExceptHandler, ast.match_case)
            waiting.extend(each for each in ast.iter_child_nodes(node) if isinstance(each, inside))
    for part, statement in stored:
        if part and (not part.isidentifier() or part in shared):
            yield part, statement


def _targets(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign):
        waiting: list[ast.AST] = list(node.targets)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        waiting = [item.optional_vars for item in node.items if item.optional_vars]
    else:
        waiting = [node.target]  # type: ignore[attr-defined]  # the others have one
    while waiting:
        target = waiting.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            waiting.extend(target.elts)
        else:
            yield target
