"""Where a script clips gradients itself, by how it reads: `min(1, limit / norm)`, `(limit / norm).clamp(max=1)`, or
`limit / norm` where `norm > limit`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from time import thread_time
from types import CodeType
from typing import NamedTuple

from ..loops.parsed_source import Function, called, is_small, mentions, own_nodes, scope_name, scopes, text, tree_of

MOST_FILES = 6  # that are parsed for it
MOST_SECONDS = 0.05  # after which no further file is begun
MOST_DIVISORS = 64
NORMS = ("norm", "sqrt", "square", "pow", "**")  # a file without any of these computes no norm
BOUNDING = ("min", "clamp", "clamp_", "clip", "clip_", "minimum")
WRAPPING = ("item", "float", "max", "clamp_min", "maximum", "detach")


class ClipLine(NamedTuple):
    line: int
    limit: ast.expr
    norm: ast.expr


Key = tuple[str, str, int]


class ClipLines(NamedTuple):
    by_function: dict[Key, ClipLine]
    divisors: list[ast.expr]
    """What is divided by in the same files: the scale of the loss may be among it."""


def key_of(code: CodeType) -> Key:
    """A module begins at line 0 or 1, by the version of Python."""
    return code.co_filename, code.co_name, 0 if code.co_name == "<module>" else code.co_firstlineno


def find(files: Iterable[str]) -> ClipLines:
    found = ClipLines({}, [])
    divisors: dict[str, ast.expr] = {}
    until = thread_time() + MOST_SECONDS
    for file in [file for file in files if any(mentions(file, word) for word in NORMS)][:MOST_FILES]:
        tree = tree_of(file) if thread_time() < until else None
        if tree is None:
            continue
        for scope in scopes(tree):
            own = list(own_nodes(scope))
            clip = next(_clips(own), None)
            if clip is not None:
                found.by_function[file, scope_name(scope), _first_line(scope)] = clip
            divisors.update({text(each): each for each in map(_divisor, own) if each is not None})
    found.divisors.extend(list(divisors.values())[:MOST_DIVISORS])
    return found


def _first_line(scope: Function | ast.Module) -> int:
    if isinstance(scope, ast.Module):
        return 0
    return min([scope.lineno, *(decorator.lineno for decorator in scope.decorator_list)])


def _clips(own: list[ast.AST]) -> Iterator[ClipLine]:
    named = {
        target.id: node.value
        for node in own
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in own:
        if isinstance(node, ast.Call) and called(node) in BOUNDING and any(map(_is_one, _given(node))):
            ratios = (_ratio(named.get(each.id, each) if isinstance(each, ast.Name) else each) for each in _given(node))
        elif isinstance(node, (ast.If, ast.IfExp)) and isinstance(node.test, ast.Compare) and is_small(node.test):
            compared = {text(each) for each in (node.test.left, *node.test.comparators)}
            parts = node.body if isinstance(node.body, list) else [node.body]
            inside = (ratio for part in parts for each in ast.walk(part) if (ratio := _ratio(each)) is not None)
            every = ((limit, norm) for above, norm in inside for limit in _factors(above))
            ratios = (each for each in every if {text(each[0]), text(each[1])} <= compared)
        else:
            continue
        for ratio in ratios:
            if ratio is not None:
                yield ClipLine(node.lineno, *ratio)


def _given(call: ast.Call) -> list[ast.expr]:
    before = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*before, *call.args, *(each.value for each in call.keywords)]


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 1


def _ratio(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Limit and norm."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or not is_small(node):
        return None
    norm: ast.expr = node.right
    while not isinstance(norm, (ast.Name, ast.Attribute)):
        if isinstance(norm, ast.BinOp) and isinstance(norm.op, ast.Add):  # and an epsilon
            norm = norm.right if isinstance(norm.left, ast.Constant) else norm.left
        elif isinstance(norm, ast.Call) and called(norm) in WRAPPING and _given(norm):
            plain = isinstance(norm.func, ast.Name) and norm.args
            norm = norm.args[0] if plain else _given(norm)[0]
        else:
            return None
    return node.left, norm


def _factors(node: ast.expr) -> list[ast.expr]:
    """`gradient * limit / norm` divides a product."""
    return [node, node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else [node]


def _divisor(node: ast.AST) -> ast.expr | None:
    divisor: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        divisor = node.right
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        divisor = node.value
    elif isinstance(node, ast.Call) and called(node) in ("div", "div_", "_foreach_div_") and node.args:
        divisor = node.args[-1]
    return divisor if isinstance(divisor, (ast.Name, ast.Attribute, ast.Constant)) else None
