"""What a measure is computed from, as a print: tensors and modules with their versions and some of their numbers.

`passed = (critic(fake) > 0).float().mean().item()` is the same for as long as neither `critic` nor `fake` changes.
Where a call may read anything else there is no print.
"""

from __future__ import annotations

import ast
import sys
import zlib
from types import FunctionType, ModuleType
from typing import Any

from ... import tensors
from ...objects import UNKNOWN, ids, in_class, instance_dict, module_dict, mro_of
from ...stepping import some_numbers
from .conditions import called, seen_from, shown
from .expressions import NUMBERS, Scope
from .parsed_source import is_small, text
from .rounds import Round

MOST_TENSORS = 512  # of which a print is made,
MOST_READ = 16  # and so many of which numbers are in it
MOST_DEEP = 3  # functions one inside another
_PLAIN = NUMBERS | ids(str, type(None))
_BUILT_IN = ids(type(len))
_PURE = frozenset(("torch", "torch.nn.functional", "torch.linalg", "math"))
_DRAWING = (
    "rand",
    "bernoulli",
    "multinomial",
    "poisson",
    "dropout",
    "sample",
    "rsample",
    "normal_",
    "uniform_",
    "empty",
)
_LOCAL = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr, ast.If, ast.With)


class _OtherError(Exception):
    """It may read something else."""


def measured_from(statement: ast.stmt, value: ast.expr, scope: Scope, turn: Round) -> tuple[str, list[str]]:
    """The print and the names of what it is computed from; empty where that is not known, or the round does more with
    it than to call it."""
    torch = sys.modules.get("torch")
    if torch is None or not is_small(value):
        return "", []
    print_ = _Print(scope, torch)
    try:
        print_.visit(value)
        if not print_.tensors or _is_used(print_, statement, turn):
            return "", []
        parts = print_.parts, print_.numbers()
    except _OtherError:
        return "", []
    return f"{zlib.crc32(repr(parts).encode()):08x}", list(print_.names)


class _Print(ast.NodeVisitor):
    def __init__(self, scope: Scope, torch: Any) -> None:
        self.scope, self._torch = scope, torch
        self.parts: list[object] = []
        self.names: dict[str, None] = {}
        self.tensors: dict[int, Any] = {}
        self.lines: set[int] = set()  # of the functions that are called for it
        self._deep = 0

    def visit_Name(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and " in " in node.id:
            return  # a called function's own
        held = self.scope.find(node)
        if held is UNKNOWN and isinstance(node, (ast.Attribute, ast.Subscript)):
            self.generic_visit(node)
        elif id(type(held)) in _PLAIN or type(held) is self._torch.dtype:
            self.parts.append(shown(held).text)
        elif not self._is_torchs(held, node):
            raise _OtherError

    visit_Attribute = visit_Subscript = visit_Name

    def _is_torchs(self, held: Any, node: ast.expr) -> bool:
        """It is a tensor or a module, of which the print now has what there is in it."""
        if type(held) is self._torch.Tensor or type(held) is self._torch.nn.Parameter:
            self._add(held)
        elif self._is_module(held):
            from ..learning import naming  # which needs torch

            for _, part in naming.tree(held):
                if _may_draw(part, naming.is_training(part)):
                    raise _OtherError
                for kind in ("_parameters", "_buffers"):
                    for each in naming.table(part, kind).values():
                        self._add(each)
        else:
            return False
        self.names[text(node)] = None
        return True

    def _is_module(self, held: Any) -> bool:
        return any(kind is self._torch.nn.Module for kind in mro_of(type(held)))

    def _add(self, tensor: Any) -> None:
        """Written through `.data` its version does not change: where its numbers cannot be read it is not known."""
        plain = type(tensor) is self._torch.Tensor or type(tensor) is self._torch.nn.Parameter
        if not plain or len(self.tensors) >= MOST_TENSORS or tensor.is_inference() or not tensors.readable(tensor):
            raise _OtherError
        self.tensors[id(tensor)] = tensor
        self.parts.append((id(tensor), int(tensor._version)))

    def numbers(self) -> list[Any]:
        """Of some of the tensors, the last one among them."""
        held = list(self.tensors.values())[::-1]
        try:
            return [some_numbers(each) for each in held[:: 1 + len(held) // MOST_READ]]
        except RuntimeError as error:  # one of many that vmap goes through at once
            raise _OtherError from error

    def visit_Call(self, node: ast.Call) -> None:
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.visit(each)
        held = self.scope.find(node.func)
        if held is not UNKNOWN and self._is_module(held):
            self.visit(node.func)
        elif id(type(held)) in _BUILT_IN and isinstance(node.func, ast.Name):
            if node.func.id not in ("len", "min", "max", "sum", "abs", "round"):
                raise _OtherError
        elif held is not float and held is not int and not self._of_torch(node.func):
            self._inside(node)

    def _of_torch(self, function: ast.expr) -> bool:
        """A function of torch that draws nothing, or a method of a tensor."""
        if not isinstance(function, ast.Attribute):
            return False
        owner = self.scope.find(function.value)
        if issubclass(type(owner), ModuleType):
            name = (module_dict(owner) or {}).get("__name__")
            return name in _PURE and not _draws(function.attr)
        if (owner is not UNKNOWN and type(owner) is not self._torch.Tensor) or _draws(function.attr):
            return False
        self.visit(function.value)
        return True

    def _inside(self, node: ast.Call) -> None:
        """What a function of the user's reads besides."""
        found = called(node, self.scope)
        self._deep += 1
        if found is None or self._deep > MOST_DEEP:
            raise _OtherError
        for statement in seen_from(found[0], found[1], node, found[2]):
            for each in ast.walk(statement):
                if isinstance(each, ast.stmt):
                    self.lines.add(each.lineno)
                    if not isinstance(each, _LOCAL):
                        raise _OtherError
            self.generic_visit(statement)
        self._deep -= 1

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Await)):
            raise _OtherError
        super().generic_visit(node)


def _draws(name: str) -> bool:
    return name.startswith(_DRAWING) or name == "normal"


def _may_draw(module: Any, training: bool) -> bool:
    """Its `forward` names a function that draws numbers; dropout does so in training mode only."""
    written = in_class(type(module), "forward")
    code = written[1].__code__ if written is not None and type(written[1]) is FunctionType else None
    names = [] if code is None else list(filter(_draws, code.co_names))
    return code is None or any(training or not name.startswith("dropout") for name in names)


def _is_used(print_: _Print, measuring: ast.stmt, turn: Round) -> bool:
    """Another statement of the round does more with it than to call it, or an optimizer there is for it."""
    for statement in (placed.statement for placed in turn.ran):
        nodes = [node for part in _head(statement) for node in ast.walk(part)]
        callees = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        measures = statement.lineno == measuring.lineno or statement.lineno in print_.lines
        for node in nodes:
            named = isinstance(node, (ast.Name, ast.Attribute)) and text(node) in print_.names
            if named and id(node) not in callees and not measures:
                return True
            if isinstance(node, ast.Attribute) and node.attr == "step" and _updates(print_, node.value):
                return True
    return False


def _head(statement: ast.stmt) -> list[ast.AST]:
    """What runs of it besides the statements within, which come by themselves."""
    within = ("body", "orelse", "finalbody", "handlers", "cases")
    fields = [value for name, value in ast.iter_fields(statement) if name not in within]
    parts = [each for value in fields for each in (value if isinstance(value, list) else [value])]
    return [each for each in parts if isinstance(each, ast.AST)]


def _updates(print_: _Print, node: ast.expr) -> bool:
    groups = (instance_dict(print_.scope.find(node)) or {}).get("param_groups")
    groups = groups[:MOST_DEEP] if type(groups) is list else []
    params = [group.get("params") for group in groups if type(group) is dict]
    return any(id(each) in print_.tensors for some in params if type(some) is list for each in some)
