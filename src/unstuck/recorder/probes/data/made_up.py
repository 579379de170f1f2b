"""Whether inputs or targets are drawn at random and nothing is computed from them: a trial run, whose targets cannot be
learned and need not be. Read from the source, never run."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal

from ..loops.parsed_source import FUNCTIONS, Function, tree_of

Fate = Literal["used", "passed on", ""]
"""Of a value: something is computed from it; it only becomes a part of a batch, or a target; neither."""

MOST_BYTES = 200_000  # of all files together: more would be felt
MOST_STEPS = 40  # from a draw outwards
MOST_DEPTH = 6  # names that are other names of names
DRAWS = frozenset(
    ("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "random", "standard_normal", "integers",
     "randrange", "random_sample", "normal", "uniform", "bernoulli", "binomial", "choice", "choices", "gauss")
)  # fmt: skip
OF_VALUES = frozenset(("normal", "uniform", "bernoulli", "binomial", "choice", "choices", "gauss"))
"""Draws whose first argument may be data, and the draw say something about it."""
FILLS = frozenset(("random_", "uniform_", "normal_", "bernoulli_"))  # a tensor that was just made
NOT_ALONE = frozenset(("normal", "uniform", "random", "choice", "choices", "binomial", "integers"))  # without a module
KEEPS = frozenset(
    ("float", "double", "half", "bfloat16", "long", "int", "bool", "to", "type", "astype", "cuda", "cpu", "numpy",
     "clone", "copy", "detach", "contiguous", "unsqueeze", "squeeze", "reshape", "view", "flatten", "tolist", "item",
     "abs", "clamp", "round", "floor", "expand", "repeat", "T", "data")
)  # fmt: skip
ASKS = frozenset(("shape", "dtype", "device", "ndim", "size", "dim", "numel"))
WRAPS = frozenset(
    ("tensor", "as_tensor", "from_numpy", "array", "asarray", "stack", "float", "int", "list", "FloatTensor",
     "LongTensor", "Tensor")
)  # fmt: skip
GATHERS = frozenset(("TensorDataset", "zip", "append", "put", "send", "from_tensor_slices"))
TELLS = frozenset(("print", "len", "shuffle", "type", "isinstance"))
LOSS = re.compile(r"loss|criterion|entropy|\bmse|\bnll|\bbce|objective", re.IGNORECASE)


def made_up(files: Iterable[str]) -> bool | None:
    """False: all that these files draw goes into a computation. None: they draw nothing."""
    fates: set[Fate] = set()
    room = MOST_BYTES
    for file in dict.fromkeys(files):
        room -= os.path.getsize(file) if os.path.isfile(file) else 0
        tree = tree_of(file) if room >= 0 else None
        if tree is not None:
            fates |= _Source(tree).fates()
    return True if "passed on" in fates else False if "used" in fates else None


class _Source:
    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self._parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._definitions = [node for node in nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
        self._assigned: dict[str, list[ast.expr]] = defaultdict(list)
        self._reads: dict[str, list[ast.Name]] = defaultdict(list)
        self._added: set[str] = set()  # names that something is added to
        self._attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._reads[node.id].append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self._attributes[node.attr].append(node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self._added.add(node.target.id)
            elif isinstance(node, ast.Assign):
                for name in (target.id for target in node.targets if isinstance(target, ast.Name)):
                    self._assigned[name].append(node.value)
        self._bound: set[tuple[str, ast.AST | None]] = set()

    def fates(self) -> set[Fate]:
        found: set[Fate] = set()
        for call in self._calls:
            if _draws(call):
                self._bound.clear()
                found.add(self._fate(call, 0))
        return found

    def _fate(self, node: ast.AST, depth: int) -> Fate:
        """What becomes of the value of an expression."""
        if depth > MOST_DEPTH:
            return "used"
        for _ in range(MOST_STEPS):
            parent = self._parents.get(node)
            if isinstance(parent, ast.Attribute):
                call = self._parents.get(parent)
                is_called = isinstance(call, ast.Call) and call.func is parent
                if parent.attr not in KEEPS:
                    return "" if parent.attr in ASKS else "used"
                node = call if is_called and call is not None else parent
            elif isinstance(parent, ast.Call):
                name = _called(parent)
                if name not in WRAPS:
                    return self._given(parent, node, name, depth)
                node = parent
            elif isinstance(parent, ast.Subscript):
                if node is parent.slice or not isinstance(parent.ctx, ast.Load) or not self._only_picks(parent.slice):
                    return "used"
                node = parent
            elif isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare):
                others = [part for part in ast.iter_child_nodes(parent) if part is not node]
                if not all(_is_constant(part) for part in others):
                    return "" if isinstance(parent, ast.Compare) else self._in_a_loss(parent)
                node = parent
            elif isinstance(parent, ast.ListComp | ast.GeneratorExp | ast.keyword | ast.Starred):
                node = parent
            elif isinstance(parent, ast.Tuple | ast.List | ast.Dict):
                above = self._parents.get(parent)
                if isinstance(above, ast.Assign) and isinstance(parent, ast.Tuple):
                    return self._of_pair(above, parent.elts.index(node), depth)  # type: ignore[arg-type]
                if not isinstance(above, ast.Call):
                    return "used" if isinstance(above, ast.Subscript) else "passed on"
                node = parent
            else:
                return self._at_statement(parent, depth)
        return "used"

    def _at_statement(self, statement: ast.AST | None, depth: int) -> Fate:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return _of_all(self._of_name(target, depth) for target in targets)
        if isinstance(statement, ast.Yield):
            return "passed on"
        if isinstance(statement, ast.Return | ast.Lambda):
            function = statement if isinstance(statement, ast.Lambda) else self._function(statement)
            name = "" if function is None or isinstance(function, ast.Lambda) else function.name
            calls = [call for call in self._calls if name and _called(call) == name]
            return _of_all(self._fate(call, depth + 1) for call in calls) if calls else "passed on"
        return "" if isinstance(statement, ast.Expr) else "used"

    def _given(self, call: ast.Call, node: ast.AST, name: str, depth: int) -> Fate:
        """To a call, as one of its arguments."""
        if name in TELLS or name in GATHERS or LOSS.search(name):
            return "" if name in TELLS else "passed on"
        for other in (definition for definition in self._definitions if definition.name == name):
            made = [each for each in other.body if isinstance(each, FUNCTIONS) and each.name == "__init__"]
            function = other if isinstance(other, FUNCTIONS) else made[0] if made else None
            parameter = _parameter(function, call, node, function is not other) if function is not None else None
            if parameter is not None:
                return self._of_reads(parameter, function, depth)
        return "used"

    def _of_pair(self, statement: ast.Assign, place: int, depth: int) -> Fate:
        """`x, y = torch.randn(8), torch.rand(8)`"""
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and place < len(target.elts):
            return self._of_name(target.elts[place], depth)
        return "passed on"

    def _of_name(self, target: ast.AST, depth: int) -> Fate:
        if isinstance(target, ast.Name):
            return self._of_reads(target.id, self._function(target), depth)
        if not isinstance(target, ast.Attribute):
            return "used"
        if (target.attr, None) in self._bound:
            return ""
        self._bound.add((target.attr, None))
        return _of_all(self._fate(read, depth + 1) for read in self._attributes[target.attr])

    def _of_reads(self, name: str, function: Function | None, depth: int) -> Fate:
        if (name, function) in self._bound:
            return ""
        self._bound.add((name, function))
        if name in self._added:
            return "used"
        reads = [read for read in self._reads[name] if function is None or function in self._around(read)]
        return _of_all(self._fate(read, depth + 1) for read in reads)

    def _in_a_loss(self, node: ast.AST) -> Fate:
        """`loss = ((model(x) - y) ** 2).mean()`"""
        statement = next((above for above in self._around(node) if isinstance(above, ast.stmt)), None)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        return "passed on" if any(LOSS.search(ast.unparse(target)) for target in targets) else "used"

    def _only_picks(self, index: ast.AST) -> bool:
        """It says which rows, and nothing of what is in any: places counted, or a permutation."""
        calls = [node for node in ast.walk(index) if isinstance(node, ast.Call)]
        within = {part for call in calls for part in ast.walk(call)}
        names = [node for node in ast.walk(index) if isinstance(node, ast.Name) and node not in within]
        values = [value for name in names for value in self._assigned[name.id] if not _is_constant(value)]
        return all(isinstance(value, ast.Call) and _orders(value) for value in (*calls, *values))

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def _function(self, node: ast.AST) -> Function | None:
        return next((above for above in self._around(node) if isinstance(above, FUNCTIONS)), None)


def _draws(call: ast.Call) -> bool:
    name = _called(call)
    if name in FILLS:
        return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
    if name not in DRAWS or (name in NOT_ALONE and isinstance(call.func, ast.Name)):
        return False
    return name not in OF_VALUES or not call.args or _is_constant(call.args[0])


def _called(call: ast.Call) -> str:
    function = call.func
    name = function.id if isinstance(function, ast.Name) else ""
    return function.attr if isinstance(function, ast.Attribute) else name


def _orders(call: ast.Call) -> bool:
    return "perm" in _called(call) or _called(call) in ("range", "arange", "len")


def _is_constant(node: ast.AST) -> bool:
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))


def _parameter(function: Function, call: ast.Call, given: ast.AST, is_method: bool) -> str | None:
    """The name by which a function knows what it is given."""
    if isinstance(given, ast.keyword):
        return given.arg
    known = function.args.args[is_method:]
    place = call.args.index(given) if given in call.args else len(known)
    return known[place].arg if place < len(known) else None


def _of_all(fates: Iterator[Fate]) -> Fate:
    found = set(fates)
    return "used" if "used" in found else "passed on" if "passed on" in found else ""
