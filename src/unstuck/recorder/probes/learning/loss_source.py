"""The source of a loss: what backward is called on, what a name in it stands for, and what leaves a term of it without
a graph.

Only the file in which backward is called is read; a name of two functions stands for neither.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ...records.learning import TermOp
from ..loops.parsed_source import Function, covers, scope_name
from . import script_lines
from .lost_update import Scope

MAX_LOOKED = 3000  # parts of the source
MEANT = ("detach", "item", "float", "tolist", "numpy")
WEIGHTS = ("parameters", "named_parameters")
NO_GRAPH = re.compile("no_grad|inference_mode")
Cause = tuple[TermOp, int, str]  # the operation, its line, the function that it stands in


class Source:
    def __init__(self, file: str, derivatives: Iterable[int] = ()) -> None:
        self.file = file
        self._derivatives = set(derivatives)
        """Lines on which one of what the weights are in was taken, without a graph of its own."""
        self._tree = script_lines.parsed(file) or ast.Module([], [])
        self._left = MAX_LOOKED
        self._defined = [node for node in ast.walk(self._tree) if isinstance(node, Function)]
        names = [function.name for function in self._defined]
        self._functions = {each.name: each for each in self._defined if names.count(each.name) == 1}
        self._seen: set[str] = set()  # functions in which a cause was looked for

    def given_to_backward(self, line: int) -> Iterator[tuple[ast.expr, Scope]]:
        """What the call on that line is about: `loss.backward()`, `autograd.grad(loss, …)`."""
        around: list[Scope] = [each for each in self._defined if covers(each, line)]
        scope = around[-1] if around else self._tree
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and covers(node, line):
                name = script_lines.called(node)
                if name in ("backward", "grad") and node.args:
                    yield node.args[0], scope
                elif name == "backward" and isinstance(node.func, ast.Attribute):
                    yield node.func.value, scope

    def values(self, name: str, scope: Scope) -> list[tuple[ast.expr, int]]:
        """What a name is given in a function while graphs are recorded, in the order of lines."""
        return [(value, line) for target, value, line in _assigned(scope.body) if target == name]

    def returned(self, call: ast.Call) -> list[tuple[ast.expr, Function]]:
        """What a function of this file returns; of several values the first."""
        function = self._functions.get(script_lines.called(call))
        if function is None or any(NO_GRAPH.search(ast.unparse(each)) for each in function.decorator_list):
            return []
        returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
        return [(value.elts[0] if isinstance(value, ast.Tuple) else value, function) for value in returns]

    def is_defined(self, name: str) -> bool:
        return name in self._functions

    def cause(self, given: ast.AST, scope: Scope, names: frozenset[str] = frozenset()) -> Cause | None:
        """What leaves it without a graph; not what is cut off on purpose. `names`: of this function, from which it was
        come here."""
        self._left -= 1
        if self._left < 0:
            return None
        if isinstance(given, ast.Name) and given.id not in names:
            return self._first((value for value, _ in self.values(given.id, scope)), scope, names | {given.id})
        if isinstance(given, ast.Attribute) and given.attr == "data" and _is_weight(given.value, scope):
            return "data", given.lineno, scope_name(scope)
        if isinstance(given, ast.Call):
            return self._cause_in_call(given, scope, names)
        return self._first(ast.iter_child_nodes(given), scope, names)

    def _first(self, parts: Iterable[ast.AST], scope: Scope, names: frozenset[str]) -> Cause | None:
        return next((found for part in parts if (found := self.cause(part, scope, names)) is not None), None)

    def _cause_in_call(self, call: ast.Call, scope: Scope, names: frozenset[str]) -> Cause | None:
        name = script_lines.called(call)
        if name == "grad" and not self.is_defined(name):
            asked = {part.id for each in call.args[1:2] for part in ast.walk(each) if isinstance(part, ast.Name)}
            moved = not names.isdisjoint(asked)  # `x = x - rate * grad(energy, x)`: a sampler, or an attack
            lines = range(call.lineno, (call.end_lineno or call.lineno) + 1)
            meant = moved or _keeps_graph(call) or self._derivatives.isdisjoint(lines)
            return None if meant else ("autograd.grad", call.lineno, scope_name(scope))
        if name in ("tensor", "as_tensor"):
            return ("tensor", call.lineno, scope_name(scope)) if _goes_through_weights(call) else None
        if name in MEANT:
            weight = name == "detach" and isinstance(call.func, ast.Attribute) and _is_weight(call.func.value, scope)
            return ("detach", call.lineno, scope_name(scope)) if weight else None
        if name not in self._seen:
            self._seen.add(name)
            for value, function in self.returned(call):
                found = self.cause(value, function)
                if found is not None:
                    return found
        return self._first(ast.iter_child_nodes(call), scope, names)


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr, int]]:
    """(name, value, line) of each assignment; not those where no graph is recorded."""
    for statement in body:
        if isinstance(statement, Function | ast.ClassDef):
            continue
        if isinstance(statement, ast.With) and any(NO_GRAPH.search(ast.unparse(each)) for each in statement.items):
            continue
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _pairs(target, statement.value, statement.lineno)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            before = ast.Name(statement.target.id, ast.Load())
            value = ast.copy_location(ast.BinOp(before, statement.op, statement.value), statement)
            yield statement.target.id, value, statement.lineno
        for part in ("body", "orelse", "finalbody"):
            yield from _assigned(getattr(statement, part, []))


def _pairs(target: ast.expr, value: ast.expr, line: int) -> Iterator[tuple[str, ast.expr, int]]:
    """Of a tuple that is not written out each name has all of the value."""
    if isinstance(target, ast.Name):
        yield target.id, value, line
    elif isinstance(target, ast.Tuple):
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for place, part in enumerate(target.elts):
            yield from _pairs(part, values[place] if values else value, line)


def _keeps_graph(call: ast.Call) -> bool:
    """`create_graph` is given, and not as False."""
    given = [each.value for each in call.keywords if each.arg == "create_graph"] + call.args[4:5]
    return any(not (isinstance(value, ast.Constant) and not value.value) for value in given)


def _is_weight(given: ast.expr, scope: Scope) -> bool:
    """It stands for each of the model's parameters in turn."""
    if not isinstance(given, ast.Name):
        return False
    loops = [node for node in ast.walk(scope) if isinstance(node, ast.For | ast.comprehension)]
    over = [part for loop in loops if _goes_through_weights(loop.iter) for part in ast.walk(loop.target)]
    return any(isinstance(part, ast.Name) and part.id == given.id for part in over)


def _goes_through_weights(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) and script_lines.called(part) in WEIGHTS for part in ast.walk(node))
