"""Finds the path a loop waits to be rid of (a lock file), and its value where the source states it."""

from __future__ import annotations

import ast
import os

_TESTS = {"os.path.exists", "os.path.lexists", "os.path.isfile", "os.path.isdir", "os.stat", "os.access"}
_METHODS = {"exists", "is_file", "is_dir"}
_MAKES = {"os.mkdir", "os.link", "os.symlink"}


def polled_path(loop: ast.AST) -> str:
    """The expression of the path whose end the loop waits for; empty where it waits for none.

    `while exists(x): sleep` waits for x to go; so does a loop that sleeps and tries to create x exclusively.
    `while not exists(x)` waits for x to come: that is no lock file.
    """
    if not isinstance(loop, ast.While):
        return ""
    for call in _asserted(loop.test):
        path = _path_tested(call)
        if path is not None:
            return ast.unparse(path)
    sleeps = any(_sleeps(node) for node in ast.walk(loop))
    for node in ast.walk(loop):
        path = _path_made(node) if isinstance(node, ast.Call) else _path_left_when_gone(node) if sleeps else None
        if path is not None:
            return ast.unparse(path)
    return ""


def _asserted(test: ast.expr) -> list[ast.Call]:
    """Calls that must be true for the loop to go on."""
    if isinstance(test, ast.BoolOp):
        return [call for value in test.values for call in _asserted(value)]
    return [test] if isinstance(test, ast.Call) else []


def _sleeps(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep"


def _path_left_when_gone(node: ast.AST) -> ast.expr | None:
    """`if not exists(x): break` (or return) inside the loop."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.UnaryOp) or not isinstance(node.test.op, ast.Not):
        return None
    if not isinstance(node.test.operand, ast.Call) or not isinstance(node.body[-1], ast.Break | ast.Return):
        return None
    return _path_tested(node.test.operand)


def _path_tested(call: ast.Call) -> ast.expr | None:
    """x of exists(x), x.exists() and their like."""
    name = _name(call)
    if name in _TESTS and call.args:
        return call.args[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS and not call.args and name not in _TESTS:
        return call.func.value
    return None


def _path_made(call: ast.Call) -> ast.expr | None:
    """x of a call that fails while x exists."""
    name, first = _name(call), call.args[0] if call.args else None
    if name in _MAKES:
        return call.args[-1] if name != "os.mkdir" and len(call.args) > 1 else first
    if name == "open" and first is not None and _opens_exclusively(call.args[1:2], call):
        return first
    if name == "os.open" and first is not None and any("O_EXCL" in ast.unparse(flags) for flags in call.args[1:]):
        return first
    if isinstance(call.func, ast.Attribute) and call.func.attr == "open" and _opens_exclusively(call.args[:1], call):
        return call.func.value if name != "os.open" else None
    return None


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def _opens_exclusively(positional: list[ast.expr], call: ast.Call) -> bool:
    modes = positional + [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return any(isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "x" in mode.value for mode in modes)


def stated_path(tree: ast.Module, expression: str) -> str | None:
    """The path as far as the source alone says it: a literal, a module constant, Path(...), a join of these."""
    try:
        wanted = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            constants[name] = node.value if name not in constants else ast.Constant(None)  # set twice: not constant
    return _value(wanted, constants, depth=8)


def _value(node: ast.expr, constants: dict[str, ast.expr], depth: int) -> str | None:
    if depth == 0:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return _value(constants[node.id], constants, depth - 1) if node.id in constants else None
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Path", "pathlib.Path", "os.path.join", "str"):
        parts = node.args
    values = [_value(part, constants, depth - 1) for part in parts]
    known = [value for value in values if value is not None]
    return os.path.join(*known) if known and len(known) == len(values) else None
