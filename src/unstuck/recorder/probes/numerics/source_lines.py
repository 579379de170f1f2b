"""Operations found in the user's source: the line that has one, the line that gives a name its value."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ... import user_code
from ...records import Site

FILES = 24
LARGEST = 2_000_000
WRITTEN: dict[str, tuple[tuple[str, ...], Any]] = {  # operation: calls that make it, and the operator
    **{
        name: ((name,), None)
        for name in (
            "log", "log2", "log10", "exp", "sqrt", "rsqrt", "std", "var", "softmax", "mean", "sign", "sgn", "round",
            "floor", "ceil", "trunc",
        )
    },
    "log1_p": (("log1p",), None),
    "pow": (("pow",), ast.Pow),
    "div": (("div", "divide", "true_divide"), ast.Div),
    "reciprocal": (("reciprocal",), ast.Div),
    "acos": (("acos", "arccos"), None),
    "asin": (("asin", "arcsin"), None),
    "atanh": (("atanh", "arctanh"), None),
    "log_softmax": (("log_softmax", "cross_entropy"), None),
    "nll_loss": (("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"), None),
}  # fmt: skip


def written(operation: str, frame: FrameType | None) -> Site | None:
    """The one line of the user's source that has such an operation; None where there are several, or none."""
    calls, operator = WRITTEN.get(operation, ((), None))
    if not calls:
        return None
    places = [site for file in files(frame) for site in _places(file, calls, operator)]
    return places[0] if len({place[:2] for place in places}) == 1 else None


def files(frame: FrameType | None) -> list[str]:
    """Files of the user's: those on the stack, then those of imported modules."""
    found: dict[str, None] = {}
    while frame is not None:
        found[frame.f_code.co_filename] = None
        frame = frame.f_back
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if type(file) is str and file.endswith(".py"):
            found[file] = None
    return [file for file in found if user_code.is_user_file(file)][:FILES]


def parse(file: str) -> ast.Module | None:
    try:
        with open(file, "rb") as source:
            return ast.parse(source.read(LARGEST))
    except (OSError, SyntaxError, ValueError):
        return None


def _places(file: str, calls: tuple[str, ...], operator: Any) -> Iterator[Site]:
    tree = parse(file)
    waiting: list[tuple[ast.AST, str]] = [(tree, "")] if tree is not None else []
    while waiting:
        node, function = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}" if function else node.name
        named = isinstance(node, ast.Call) and called(node) in calls
        if named or (operator is not None and isinstance(node, ast.BinOp) and isinstance(node.op, operator)):
            assert isinstance(node, ast.expr)
            yield user_code.absolute(file), node.lineno, function or "<module>"
        waiting.extend((part, function) for part in reversed(list(ast.iter_child_nodes(node))))


def called(call: ast.Call) -> str:
    """`torch.log(x)`, `x.log()`, `log(x)`; not those of other libraries."""
    function = call.func
    if isinstance(function, ast.Attribute):
        base = function.value
        return "" if isinstance(base, ast.Name) and base.id in ("math", "np", "numpy", "logging") else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def assigned(name: str, file: str, function: str) -> Site | None:
    """Where a name of that function first gets its value."""
    for node in _inside(file, function):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Name) and part.id == name for each in targets for part in ast.walk(each)):
                return user_code.absolute(file), node.lineno, function
    return None


def _inside(file: str, function: str) -> Iterator[ast.AST]:
    """All nodes of every function of that name; of the whole file where it is the module's own code."""
    tree, last = parse(file), function.rpartition(".")[2]
    for scope in ast.walk(tree) if tree is not None else ():
        if getattr(scope, "name", "<module>" if isinstance(scope, ast.Module) else "") == last:
            yield from ast.walk(scope)
