"""Finds the path whose existence a loop keeps testing, and its value where the source states it."""

from __future__ import annotations

import ast
import os

_TESTS = {"os.path.exists", "os.path.lexists", "os.path.isfile", "os.path.isdir", "os.stat", "os.access"}
_METHODS = {"exists", "is_file", "is_dir"}
_MAKES = {"os.mkdir", "os.link", "os.symlink"}


def polled_path(loop: ast.AST) -> str:
    """The expression of the path; empty where the loop tests none."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call):
            path = _path_tested(node)
            if path is not None:
                return ast.unparse(path)
    return ""


def _path_tested(call: ast.Call) -> ast.expr | None:
    name = ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
    first = call.args[0] if call.args else None
    if name in _TESTS and first is not None:
        return first
    if name in _MAKES:
        return call.args[-1] if name != "os.mkdir" and len(call.args) > 1 else first
    if name == "open" and first is not None and _opens_exclusively(call.args[1:2], call):
        return first
    if name == "os.open" and first is not None and any("O_EXCL" in ast.unparse(flags) for flags in call.args[1:]):
        return first
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in _METHODS and not call.args and name not in _TESTS:
            return call.func.value
        if call.func.attr == "open" and name != "os.open" and _opens_exclusively(call.args[:1], call):
            return call.func.value
    return None


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
