"""NaN that the script computes outside of any graph: weights, advantages, targets made under no_grad or from data.

Where the loss is NaN because of such a tensor, the function that made it may have returned already. The user's
functions of the next steps are then looked at as they return: the first local tensor, in the order of the source, that
is not finite while all it was computed from is. Nothing is run again.
"""

from __future__ import annotations

import ast
import sys
from time import monotonic
from types import FrameType
from typing import Any

import torch

from ... import flight, tensors, user_code
from ...hooks import modules as hooks
from ...records import Site
from ...records.numerics import Birth, ComputedValue, Why
from ..learning import script_lines
from . import edges, plain_reads
from .plain_reads import Spaces

LOGS = ("log", "log2", "log10")
UNTIL_ONE = ("acos", "arccos", "asin", "arcsin", "atanh", "arctanh")
EDGES = ("std", "var", *LOGS, *UNTIL_ONE, "sqrt", "rsqrt", "exp", "div", "pow", "softmax", "reciprocal")
"""Calls that can make NaN or infinity out of finite numbers."""
MAX_STEPS = 40  # in which it must happen once more
MIN_STEPS = 4  # … and however long they take: the first is half over, and may load modules
MAX_EVENTS, MAX_SECONDS = 3_000_000, 0.5  # most events are of our own probes, which read the graph meanwhile
YIELDS = 0x2A0  # generators and coroutines: a `yield` is a return too, and their locals are needed after it
SPREAD_WARNINGS = tuple(f"{name}(): degrees of freedom" for name in ("std", "var", "std_mean", "var_mean"))  # torch's
MAX_MODULES, MAX_WARNINGS = 4000, 200
MAX_LOCALS, MAX_ELEMENTS, MAX_DEPTH = 32, 1 << 20, 2
MAX_HOPS = 3  # from a name to what it is made of


def computed(
    name: str, file: str, function: str, local: dict[str, Any], spaces: Spaces = (), hops: int = MAX_HOPS
) -> ComputedValue | None:
    """The operation that made it in the only assignment of that name, if all tensors it was given are finite; or the
    one that made what it was given. `spaces`: names that the function can read."""
    nodes, only = script_lines.assignments(name, file, function)
    plain = only and len(nodes) == 1 and isinstance(getattr(nodes[0], "targets", [None])[0], ast.Name)
    value = nodes[0].value if plain else None
    if value is None or hops <= 0:
        return None
    made = _made(value, file, function, local, spaces)
    if made is None:
        read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} - {name}
        given = [each for each in read if type(local.get(each)) is torch.Tensor and _is_read(local[each])]
        bad = [each for each in given if not edges.finite(local[each])]
        made = computed(bad[0], file, function, local, spaces, hops - 1) if len(bad) == 1 else None
    return made


def log_before(site: Site) -> ComputedValue | None:
    """A layer called on that line gets -inf and nothing worse: the logarithm, right before, of what it is given."""
    file, line, function = site
    for name in script_lines.given_on(file, line):
        nodes = [node for node in script_lines.assignments(name, file, function)[0] if node.lineno < line]
        value = max(nodes, key=lambda node: node.lineno).value if nodes else None
        calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)] if value is not None else []
        log = next((node for node in calls if script_lines.called(node) in LOGS), None)
        if log is not None:
            return ComputedValue(
                operation=script_lines.called(log), why="log-of-zero", site=(file, log.lineno, function)
            )
    return None


def _made(
    value: ast.expr | None, file: str, function: str, local: dict[str, Any], spaces: Spaces
) -> ComputedValue | None:
    operation = _edge(value) if value is not None else None
    if value is None or operation is None:
        return None
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    given = [local[name] for name in names if type(local.get(name)) is torch.Tensor]
    if not given or not all(bool(torch.isfinite(tensor).all()) for tensor in given):
        return None
    why, detail, example = _why(operation, given)
    plain = bool(spaces) and plain_reads.is_plain(value, spaces)
    if plain and why == "computed" and _is_difference(value):
        why = "spread-as-difference"
    site = user_code.absolute(file), value.lineno, function
    return ComputedValue(operation=operation, why=why, detail=detail, example=example, plain=plain, site=site)


def _why(operation: str, given: list[Any]) -> tuple[Why, str, str]:
    """What in the finite tensors did it, where their values show it; the same in words, and what it was."""
    if operation in ("std", "var") and any(tensor.numel() <= 1 for tensor in given):
        return "spread-of-too-few", "of 1 value", ""
    zero = any(bool((tensor == 0).any()) for tensor in given)
    below = sum(int((tensor < 0).sum()) for tensor in given)
    lowest = f"{below:,} of {sum(tensor.numel() for tensor in given):,} values are below 0"
    if below:
        lowest += f", the lowest is {min(float(tensor.min()) for tensor in given):.4g}"
    if operation in LOGS and len(given) == 1 and (zero or below):
        return ("log-of-negative-data", "", lowest) if below else ("log-of-zero", "", "")
    if operation in UNTIL_ONE and len(given) == 1:
        beyond = given[0].abs() >= 1 if operation.endswith("tanh") else given[0].abs() > 1
        if bool(beyond.any()):
            return "beyond-one", "", repr(float(given[0][beyond][0]))
    if operation == "sqrt" and len(given) == 1 and below:
        return "root-of-negative", "", lowest
    return ("division-by-zero" if operation == "div" and zero else "computed"), "", ""


def _is_difference(value: ast.expr) -> bool:
    """The root of a variance computed as `mean of x² - mean²`: of finite numbers, that is NaN where it is below 0."""
    of: ast.AST | None = None
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and script_lines.called(node) in ("sqrt", "rsqrt"):
            given = [*node.args, getattr(node.func, "value", None)]
            of = given[0]
        elif _is_root(node):
            of = node.left  # type: ignore[attr-defined]
        if isinstance(of, ast.BinOp):
            return isinstance(of.op, ast.Sub) and _is_square(of.right)
    return False


def _is_root(node: ast.AST) -> bool:
    power = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else None
    return isinstance(power, ast.Constant) and power.value == 0.5


def _is_square(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        power = node.right.value if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) else None
        return power == 2 or (isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right))
    return isinstance(node, ast.Call) and script_lines.called(node) in ("square", "pow")


def _edge(value: ast.expr) -> str | None:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and script_lines.called(node) in EDGES:
            return script_lines.called(node)
        if _is_root(node):
            return "pow"
    divides = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) for node in ast.walk(value))
    return "div" if divides else None


def warned(frame: FrameType | None) -> ComputedValue | None:
    """A standard deviation of too few values, that torch itself has warned of at a line of the user's."""
    modules = [caller.f_globals for caller in script_lines.user_frames(frame)]
    modules += [getattr(module, "__dict__", {}) for module in list(sys.modules.values())[:MAX_MODULES]]
    for names in {id(each): each for each in modules}.values():
        file, registry = names.get("__file__"), names.get("__warningregistry__")
        if type(file) is not str or type(registry) is not dict or not user_code.is_user_file(file):
            continue
        for key in list(registry)[:MAX_WARNINGS]:
            text, line = (key[0], key[2]) if type(key) is tuple and len(key) == 3 else ("", 0)
            if type(text) is str and type(line) is int and text.startswith(SPREAD_WARNINGS):
                site = user_code.absolute(file), line, script_lines.function_at(file, line)
                operation = text.partition("(")[0].partition("_")[0]
                return ComputedValue(
                    operation=operation, why="spread-of-too-few", detail="of 1 value", site=site, warned=True
                )
    return None


def is_wanted(birth: Birth) -> bool:
    """The graph of that loss got a NaN tensor from outside, and no line is known that computed it."""
    known = any(tensor.computed is not None for tensor in birth.inputs)
    return bool(birth.outside or birth.inputs) and not known and not any(each.made for each in birth.operations)


class Returns:
    """Looks at the user's functions as they return, until one returns NaN that it computed from finite tensors."""

    def __init__(self, birth: Birth) -> None:
        self._birth, self._steps, self._events, self._began = birth, 0, 0, flight.steps()
        self.found = False
        self._until = monotonic() + MAX_SECONDS
        self.on = sys.getprofile() is None and not hooks.is_profiled()
        if self.on:
            birth.sought = True  # type: ignore[misc]  # it is not written yet
            sys.setprofile(self._follow)

    def stepped(self) -> bool:
        """True: it has come to its end."""
        self._steps += 1
        return self.ended()

    def ended(self) -> bool:
        """The same, asked at any time; once."""
        early = 0 < flight.steps() - self._began < MIN_STEPS
        going_on = early or (self._steps < MAX_STEPS and monotonic() < self._until)
        if self.on and not self.found and going_on:
            return False
        self.stop()
        ended = self._birth.sought
        self._birth.sought = False  # type: ignore[misc]  # it is written anew
        return ended

    def stop(self) -> None:
        if self.on and sys.getprofile() == self._follow:
            sys.setprofile(None)
        self.on = False

    def _follow(self, frame: FrameType, event: str, argument: Any) -> None:
        self._events += 1
        if self._events > MAX_EVENTS:
            self.stop()
        code = frame.f_code
        if event != "return" or self.found or code.co_flags & YIELDS or not user_code.is_user_file(code.co_filename):
            return
        try:
            sys.setprofile(None)
            with torch.no_grad():
                value = self._computed(frame, argument)
            if value is not None:
                self._birth.computed = value  # type: ignore[misc]  # it is written anew
                self.found = True
            elif self.on:
                sys.setprofile(self._follow)
        except Exception:
            self.on = False

    def _computed(self, frame: FrameType, result: Any) -> ComputedValue | None:
        if not script_lines.is_function(frame) or frame.f_code.co_name.startswith("<"):
            return None
        local = dict(frame.f_locals)  # not emptied: it is written back, also to names of functions around it
        small = {
            name: value
            for name, value in list(local.items())[:MAX_LOCALS]
            if type(value) is torch.Tensor and _is_read(value)
        }
        broken = [name for name, value in small.items() if not value.requires_grad and not edges.finite(value)]
        bad = [name for name in broken if _is_bad(small[name])]
        given = [tensor for _, tensor in tensors.plain_tensors(result, MAX_DEPTH)]
        file, function = user_code.absolute(frame.f_code.co_filename), user_code.name_of(frame.f_code)
        returned = [each for each in given if self._is_like_it(each) and _is_read(each) and _is_bad(each)]
        if not returned and not self._met_in(file, frame.f_code.co_name):
            return None
        spaces = local, frame.f_globals
        made_of = ((name, computed(name, file, function, small, spaces)) for name in broken)
        known = [(name, value) for name, value in made_of if value is not None]
        made = [value for name, value in known if name in bad or value.why == "beyond-one"]  # else a mask of -inf
        if made:
            return min(made, key=lambda value: value.site[1] if value.site is not None else 0)
        if bad or any(each.requires_grad for each in returned):
            return None
        answer = script_lines.return_at(file, frame.f_lineno) if returned else None
        return _made(answer, file, function, small, spaces)

    def _is_like_it(self, tensor: Any) -> bool:
        """It may be what made the loss NaN, in another step: all but its rows alike; or a sample that became one of
        these rows."""
        shapes = [bad.shape for bad in (*self._birth.outside, *self._birth.inputs)]
        own = [int(size) for size in tensor.shape]
        return any(own == shape[1:] or (len(own) == len(shape) and own[1:] == shape[1:]) for shape in shapes if own)

    def _met_in(self, file: str, function: str) -> bool:
        """In this function the NaN met the graph: what it gave on has one."""
        sites = (bad.site for bad in (*self._birth.outside, *self._birth.inputs))
        return any(site and site[0] == file and site[2].rpartition(".")[2] == function for site in sites)


def _is_read(tensor: Any) -> bool:
    plain = tensor.is_floating_point() and not tensor.is_sparse and tensor.device.type == "cpu"
    return bool(plain and tensor.layout is torch.strided and 0 < tensor.numel() <= MAX_ELEMENTS)


def _is_bad(tensor: Any) -> bool:
    """It holds more than the -inf of a mask."""
    return not edges.finite(tensor) and bool((~torch.isfinite(tensor) & (tensor != float("-inf"))).any())
