"""Whether inputs or targets are drawn at random and nothing is computed from them: a trial run, whose targets cannot be
learned and need not be. Read from the source, never run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from ... import user_code
from ...records import Site
from ..loops.parsed_source import FUNCTIONS, Function, called, tree_of
from .random_draws import NOISE, draws, is_constant
from .source_nodes import SourceNodes

Fate = Literal["used", "passed on", "to a loss", ""]
"""Of a value: something is computed from it; it only becomes a part of a batch; or a target; neither."""
FATES: tuple[Fate, ...] = ("used", "passed on", "to a loss")  # of one that is read in several ways the first

MOST_BYTES = 200_000  # of all files together: more would be felt
MOST_STEPS = 40  # from a draw outwards
MOST_DEPTH = 6  # names that are other names of names
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
REDUCES = re.compile(rf"{LOSS.pattern}|^(mean|sum|square|abs|norm|pow|sqrt)$", re.IGNORECASE)


def made_up(files: Iterable[str]) -> bool | None:
    """False: all that these files draw goes into a computation. None: they draw nothing."""
    fates = {fate for _, _, drawn in _files(files) for _, fate, _ in drawn}
    return True if fates & {"passed on", "to a loss"} else False if "used" in fates else None


def only_target(files: Iterable[str]) -> Site | None:
    """A line that draws noise in each step, which becomes a target and nothing else, while other noise is mixed into
    data."""
    for file, nodes, drawn in _files(files):
        mixed = any(mixed for call, _, mixed in drawn if called(call) in NOISE)
        if mixed and not any(fate == "passed on" for _, fate, _ in drawn):
            for call, fate, is_mixed in drawn:
                alone = fate == "to a loss" and not is_mixed and called(call) in NOISE
                if alone and nodes.is_repeated(call, set()):
                    return user_code.absolute(file), call.lineno, nodes.name_at(call)
    return None


def _files(files: Iterable[str]) -> Iterator[tuple[str, SourceNodes, list[tuple[ast.Call, Fate, bool]]]]:
    """Each with what it draws, what becomes of that, and whether it is a term or factor of something."""
    room = MOST_BYTES
    for file in dict.fromkeys(files):
        room -= os.path.getsize(file) if os.path.isfile(file) else 0
        tree = tree_of(file) if room >= 0 else None
        if tree is not None:
            nodes = SourceNodes(tree)
            fates = _Fates(nodes)
            yield file, nodes, [(call, *fates.fate_of(call)) for call in nodes.calls if draws(call)]


class _Fates:
    """What becomes of the values of one file."""

    def __init__(self, nodes: SourceNodes) -> None:
        self._nodes = nodes
        self._bound: set[tuple[str, ast.AST | None]] = set()
        self._is_mixed = False

    def fate_of(self, call: ast.Call) -> tuple[Fate, bool]:
        """What becomes of a draw; and whether it is a term or factor of something."""
        self._bound.clear()
        self._is_mixed = False
        return self._fate(call, 0), self._is_mixed

    def _fate(self, node: ast.AST, depth: int) -> Fate:
        """What becomes of the value of an expression."""
        if depth > MOST_DEPTH:
            return "used"
        for _ in range(MOST_STEPS):
            parent = self._nodes.parents.get(node)
            if isinstance(parent, ast.Attribute):
                call = self._nodes.parents.get(parent)
                is_called = isinstance(call, ast.Call) and call.func is parent
                if parent.attr not in KEEPS:
                    return "" if parent.attr in ASKS else "used"
                node = call if is_called and call is not None else parent
            elif isinstance(parent, ast.Call):
                name = called(parent)
                if name not in WRAPS:
                    return self._given(parent, node, name, depth)
                node = parent
            elif isinstance(parent, ast.Subscript):
                if node is parent.slice or not isinstance(parent.ctx, ast.Load) or not self._only_picks(parent.slice):
                    return "used"
                node = parent
            elif isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare):
                others = [part for part in ast.iter_child_nodes(parent) if part is not node]
                if not all(is_constant(part) for part in others):
                    return "" if isinstance(parent, ast.Compare) else self._in_a_loss(parent)
                node = parent
            elif parent is not None and _hands_on(parent, node):
                node = parent
            elif isinstance(parent, ast.Tuple | ast.List | ast.Dict):
                above = self._nodes.parents.get(parent)
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
            function = statement if isinstance(statement, ast.Lambda) else self._nodes.function_of(statement)
            name = "" if function is None or isinstance(function, ast.Lambda) else function.name
            calls = [call for call in self._nodes.calls if name and called(call) == name]
            return _of_all(self._fate(call, depth + 1) for call in calls) if calls else "passed on"
        return "" if isinstance(statement, ast.Expr) else "used"

    def _given(self, call: ast.Call, node: ast.AST, name: str, depth: int) -> Fate:
        """To a call, as one of its arguments."""
        if name in TELLS or name in GATHERS or LOSS.search(name):
            return "" if name in TELLS else "passed on" if name in GATHERS else "to a loss"
        for other in (definition for definition in self._nodes.definitions if definition.name == name):
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
            return self._of_reads(target.id, self._nodes.function_of(target), depth)
        if not isinstance(target, ast.Attribute):
            return "used"
        if (target.attr, None) in self._bound:
            return ""
        self._bound.add((target.attr, None))
        return _of_all(self._fate(read, depth + 1) for read in self._nodes.attributes[target.attr])

    def _of_reads(self, name: str, function: Function | None, depth: int) -> Fate:
        if (name, function) in self._bound:
            return ""
        self._bound.add((name, function))
        if name in self._nodes.added:
            return "used"
        reads = [read for read in self._nodes.reads[name] if self._nodes.is_meant(read, name, function)]
        return _of_all(self._fate(read, depth + 1) for read in reads)

    def _in_a_loss(self, node: ast.AST) -> Fate:
        """`loss = ((model(x) - y) ** 2).mean()`, also returned by a function of that name."""
        inner, statement = node, None
        for above in self._nodes.around(node):
            if isinstance(above, ast.stmt):
                statement = above
                break
            if isinstance(above, ast.Call) and inner is not above.func and not REDUCES.search(called(above)):
                self._is_mixed = True  # `net(x + noise)`
            inner = above
        names = [ast.unparse(target) for target in statement.targets] if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.Return):
            names = [self._nodes.name_at(statement)]
        if any(LOSS.search(name) for name in names):
            return "to a loss"
        self._is_mixed = True
        return "used"

    def _only_picks(self, index: ast.AST) -> bool:
        """It says which rows, and nothing of what is in any: places counted, or a permutation."""
        calls = [node for node in ast.walk(index) if isinstance(node, ast.Call)]
        within = {part for call in calls for part in ast.walk(call)}
        names = [node for node in ast.walk(index) if isinstance(node, ast.Name) and node not in within]
        values = [value for name in names for value in self._nodes.assigned[name.id] if not is_constant(value)]
        return all(isinstance(value, ast.Call) and _orders(value) for value in (*calls, *values))


def _hands_on(parent: ast.AST, node: ast.AST) -> bool:
    if isinstance(parent, ast.IfExp):
        return node is not parent.test
    return isinstance(parent, ast.ListComp | ast.GeneratorExp | ast.keyword | ast.Starred)


def _orders(call: ast.Call) -> bool:
    return "perm" in called(call) or called(call) in ("range", "arange", "len")


def _parameter(function: Function, call: ast.Call, given: ast.AST, is_method: bool) -> str | None:
    """The name by which a function knows what it is given."""
    if isinstance(given, ast.keyword):
        return given.arg
    known = function.args.args[is_method:]
    place = call.args.index(given) if given in call.args else len(known)
    return known[place].arg if place < len(known) else None


def _of_all(fates: Iterator[Fate]) -> Fate:
    found = set(fates)
    return next((fate for fate in FATES if fate in found), "")
