"""What was read from source, kept: the text of a node, a name as an expression, what each function of a file stores."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Function = ast.FunctionDef | ast.AsyncFunctionDef
    Stores = dict[str, list[tuple[Function, ast.stmt]]]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_STORING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)
_texts: dict[ast.AST, str] = {}
_expressions: dict[str, ast.expr] = {}
_stores: dict[ast.Module, Stores] = {}


def text(node: ast.AST) -> str:
    """As it is written. Only of nodes that are kept anyway: those of parsed files, and what was made of them once."""
    if node not in _texts:
        _texts[node] = ast.unparse(node)
    return _texts[node]


def expression(name: str) -> ast.expr:
    if name not in _expressions:
        _expressions[name] = ast.parse(name, mode="eval").body
    return _expressions[name]


def last_part(node: ast.AST) -> str:
    """The attribute or the key, whatever its owner is called: `.step` of self.step, `['step']` of state['step']."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"[{node.slice.value!r}]" if isinstance(node.slice, ast.Constant) else "[]"
    return node.id if isinstance(node, ast.Name) else ""


def stores(tree: ast.Module) -> Stores:
    """Statements in functions of the file, by the last part of what they store into: attributes, items, and names that
    the function shares with others (`global`, `nonlocal`)."""
    if tree not in _stores:
        found: Stores = {}
        for function in ast.walk(tree):
            if isinstance(function, _FUNCTIONS):
                for part, statement in _of_function(function):
                    found.setdefault(part, []).append((function, statement))
        _stores[tree] = found
    return _stores[tree]


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
        if isinstance(node, ast.stmt) and not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting.extend(
                each for each in ast.iter_child_nodes(node) if isinstance(each, (ast.stmt, ast.ExceptHandler))
            )
        elif isinstance(node, ast.ExceptHandler):
            waiting.extend(node.body)
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
