"""Lines of the script that give an array another shape, as far as their sizes fit. Read from the source, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ... import user_code
from ...records import Site
from ..learning import script_lines
from ..loops.parsed_source import FUNCTIONS, Function, own_nodes, tree_of

RESHAPES = ("reshape", "view")
MODULES = ("np", "numpy", "torch")
EXCHANGES = ("t", "T", "mT", "transpose", "permute", "swapaxes", "movedim", "moveaxis")
MOST_FILES = 8


def find(files: Iterable[str], shape: list[int], exchanged: bool = False) -> Site | None:
    """The line that fits best; sizes below 0 fit all. `exchanged`: also where it exchanges the axes of the result."""
    best: tuple[int, Site] | None = None
    for file in list(dict.fromkeys(files))[:MOST_FILES]:
        tree = tree_of(file)
        for call, fit in _calls(tree, shape, exchanged) if tree is not None else ():
            if best is None or fit > best[0]:
                name = script_lines.function_at(file, call.lineno)
                best = fit, (user_code.absolute(file), call.end_lineno or call.lineno, name)
    return None if best is None else best[1]


def exchanging(files: Iterable[str]) -> Site | None:
    """A line that gives an array sizes read off one, in another order: `b, t, h = x.shape`, then `x.view(t, b, h)`."""
    for file in list(dict.fromkeys(files))[:MOST_FILES]:
        tree = tree_of(file)
        for function in ast.walk(tree) if tree is not None else ():
            if isinstance(function, FUNCTIONS):
                axes = _axes(function)
                for call in own_nodes(function):
                    if isinstance(call, ast.Call) and _is_reshape(call):
                        order = [axis for axis in (_axis(size, axes) for size in _sizes(call)) if axis is not None]
                        if len({name for name, _ in order}) == 1 and order != sorted(order):
                            return user_code.absolute(file), call.end_lineno or call.lineno, function.name
    return None


def _axes(function: Function) -> dict[str, tuple[str, int]]:
    """Names of sizes: of which array, along which axis. Names that get several values are none."""
    found: dict[str, tuple[str, int]] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            of = _shape_of(value)
            if isinstance(target, ast.Tuple) and of is not None:
                for place, name in enumerate(target.elts):
                    if isinstance(name, ast.Name) and name.id != "_":
                        found[name.id] = ("", -1) if name.id in found else (of, place)
            elif isinstance(target, ast.Name):
                own = _axis(value, {})
                if own is not None:
                    found[target.id] = ("", -1) if target.id in found else own
    return {name: known for name, known in found.items() if known[1] >= 0}


def _shape_of(node: ast.expr) -> str | None:
    """The array whose sizes these are: `x.shape`, `x.size()`."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func if isinstance(node.func, ast.Attribute) and node.func.attr == "size" else node
    is_shape = isinstance(node, ast.Attribute) and node.attr in ("shape", "size")
    return ast.unparse(node.value) if is_shape else None  # type: ignore[attr-defined]


def _axis(node: ast.expr, axes: dict[str, tuple[str, int]]) -> tuple[str, int] | None:
    """`t`, `x.shape[1]`, `x.size(1)`, `len(x)`."""
    if isinstance(node, ast.Name):
        return axes.get(node.id)
    if isinstance(node, ast.Call) and len(node.args) == 1:
        place = node.args[0]
        if isinstance(node.func, ast.Name) and node.func.id == "len":
            return ast.unparse(place), 0
        of = _shape_of(node.func) if isinstance(node.func, ast.Attribute) and node.func.attr == "size" else None
    elif isinstance(node, ast.Subscript):
        place, of = node.slice, _shape_of(node.value)
    else:
        return None
    number = _value(place, {})
    return None if of is None or number is None or number < 0 else (of, number)


def _calls(tree: ast.Module, shape: list[int], all_: bool) -> Iterator[tuple[ast.Call, int]]:
    """Each with how many of its sizes are known to be those."""
    known = dict(_constants(tree))
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    exchanged = {id(node.value) for node in attributes if node.attr in EXCHANGES and not all_}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not _is_reshape(call) or id(call) in exchanged:
            continue
        sizes = _sizes(call)
        values = [_value(size, known) for size in sizes]
        if len(sizes) == len(shape) and not any(isinstance(size, ast.Starred) for size in sizes):
            pairs = [(value, size) for value, size in zip(values, shape, strict=True) if value not in (None, -1)]
            if all(size in (value, -1) for value, size in pairs):
                yield call, sum(size == value for value, size in pairs)


def _is_reshape(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in RESHAPES and not call.keywords


def _sizes(call: ast.Call) -> list[ast.expr]:
    own = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    given = call.args[1:] if own and call.func.value.id in MODULES else call.args  # type: ignore[attr-defined]
    return given[0].elts if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List) else given


def _constants(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Numbers that the module gives names to, in capitals: one value for good."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                paired = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                names = target.elts if paired else [target]  # type: ignore[attr-defined]
                values = node.value.elts if paired else [node.value]  # type: ignore[attr-defined]
                for name, value in zip(names, values, strict=False):
                    number = _value(value, {})
                    if isinstance(name, ast.Name) and name.id.isupper() and number is not None:
                        yield name.id, number


def _value(node: ast.expr, known: dict[str, int]) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -1 if node.operand.value == 1 else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
