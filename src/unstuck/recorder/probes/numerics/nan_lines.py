"""The user's line that an operation of the graph stands in: looked up in the source, then traced in the next step.

A broken run goes on breaking: its next forward pass is made with torch's own bookkeeping of stacks switched on
(anomaly mode without its checks, which changes no result), the node at the same place is asked, and it is off again.
"""

from __future__ import annotations

import ast
import re
import sys

from ... import user_code
from ..learning import graph_reading
from . import singular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

TRIES = 4
FILES = 24
LARGEST = 2_000_000
WRITTEN = {  # operation: calls that make it, and the operator
    "log": (("log",), None),
    "log2": (("log2",), None),
    "log10": (("log10",), None),
    "log1_p": (("log1p",), None),
    "exp": (("exp",), None),
    "sqrt": (("sqrt",), None),
    "rsqrt": (("rsqrt",), None),
    "pow": (("pow",), ast.Pow),
    "div": (("div", "divide", "true_divide"), ast.Div),
    "reciprocal": (("reciprocal",), ast.Div),
    "std": (("std",), None),
    "var": (("var",), None),
    "acos": (("acos", "arccos"), None),
    "asin": (("asin", "arcsin"), None),
    "atanh": (("atanh", "arctanh"), None),
    "softmax": (("softmax",), None),
    "log_softmax": (("log_softmax", "cross_entropy"), None),
    "nll_loss": (("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"), None),
    "mean": (("mean",), None),
    "sign": (("sign",), None),
    "sgn": (("sgn",), None),
    "round": (("round",), None),
    "floor": (("floor",), None),
    "ceil": (("ceil",), None),
    "trunc": (("trunc",), None),
}
_LINE = re.compile(r'File "([^"]+)", line (\d+), in (.*)')
_wanted: dict[str, Any] | None = None
_left = 0


def written(operation: str, frame: FrameType | None) -> list[str | int] | None:
    """The one line of the user's source that has such an operation; None where there are several, or none."""
    calls, operator = WRITTEN.get(operation, ((), None))
    if not calls:
        return None
    places: list[list[str | int]] = []
    for file in _files(frame):
        tree = _parse(file)
        if tree is not None:
            places += _places(tree, file, calls, operator)
    lines = {(place[0], place[1]) for place in places}
    return places[0] if len(lines) == 1 else None


def _files(frame: FrameType | None) -> list[str]:
    """Files of the user's: those on the stack, then those of imported modules."""
    files: dict[str, None] = {}
    here = frame
    while here is not None:
        if user_code.is_user_file(here.f_code.co_filename):
            files[here.f_code.co_filename] = None
        here = here.f_back
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if type(file) is str and file.endswith(".py") and user_code.is_user_file(file):
            files[file] = None
    return list(files)[:FILES]


def _parse(file: str) -> ast.Module | None:
    try:
        with open(file, "rb") as source:
            text = source.read(LARGEST)
        return ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return None


def _places(tree: ast.Module, file: str, calls: tuple[str, ...], operator: Any) -> list[list[str | int]]:
    found: list[list[str | int]] = []

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}" if function else node.name
        called = isinstance(node, ast.Call) and _called(node) in calls
        if called or (operator is not None and isinstance(node, ast.BinOp) and isinstance(node.op, operator)):
            assert isinstance(node, ast.expr)
            found.append([user_code.absolute(file), node.lineno, function or "<module>"])
        for part in ast.iter_child_nodes(node):
            visit(part, function)

    visit(tree, "")
    return found


def _called(call: ast.Call) -> str:
    """`torch.log(x)`, `x.log()`, `log(x)`; not those of other libraries."""
    function = call.func
    if isinstance(function, ast.Attribute):
        base = function.value
        return "" if isinstance(base, ast.Name) and base.id in ("math", "np", "numpy", "logging") else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def assigned(name: str, file: str, function: str) -> list[str | int] | None:
    """Where a name of that function first gets its value."""
    tree = _parse(file)
    if tree is None:
        return None
    last = function.rpartition(".")[2]
    for scope in ast.walk(tree):
        if getattr(scope, "name", "<module>" if isinstance(scope, ast.Module) else "") != last:
            continue
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(part, ast.Name) and part.id == name for t in targets for part in ast.walk(t)):
                    return [user_code.absolute(file), node.lineno, function]
    return None


# --- tracing the next step -----------------------------------------------------------------------------------


def trace(birth: dict[str, Any]) -> bool:
    """Have the next forward pass note its stacks. False: it cannot, or there is nothing to ask."""
    global _wanted, _left
    torch = sys.modules["torch"]
    asked = [about for about in birth["operations"][:2] + birth["outside"][:1] if not about.get("site")]
    if not asked or graph_reading.hooks_used or torch.is_anomaly_enabled():
        return False
    _wanted, _left = birth, TRIES
    torch.set_anomaly_enabled(True, False)
    return True


def traced(root: Any) -> bool:
    """Before the backward pass of that step: ask the nodes, and switch it off. False: not yet."""
    global _wanted, _left
    if _wanted is None:
        return True
    _left -= 1
    found = False
    for about in _wanted["operations"][:2] + _wanted["outside"][:1]:
        site = _asked(root, about)
        if site is not None:
            about["site"], about["traced"] = site, True
            found = True
    if found or _left <= 0:
        stop()
    return found or _left < 0


def stop() -> None:
    global _wanted
    if _wanted is not None:
        _wanted = None
        sys.modules["torch"].set_anomaly_enabled(False)


def stepped() -> bool:
    """Steps without a loss of that kind: it is given up after some. False: it is over."""
    global _left
    _left -= 1
    if _left < -TRIES:
        stop()
    return _wanted is not None


def waiting() -> bool:
    return _wanted is not None


def _asked(root: Any, about: dict[str, Any]) -> list[str | int] | None:
    from . import nan_origin

    node = singular.at(root.grad_fn, about["path"]) if root.grad_fn is not None else None
    if node is None or nan_origin._plain(graph_reading.name_of(node).removesuffix("Backward")) != about["operation"]:
        return None
    for entry in reversed(node.metadata.get("traceback_") or []):
        known = _LINE.search(entry)
        if known is not None and user_code.is_user_file(known[1]):
            return [user_code.absolute(known[1]), int(known[2]), known[3].strip()]
    return None
