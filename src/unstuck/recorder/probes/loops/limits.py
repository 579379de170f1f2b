"""How far a number can go at all: the length of a deque with `maxlen`, a remainder, a rate that is kept up."""

from __future__ import annotations

import ast
from collections import deque
from typing import Any

from ...objects import UNKNOWN, class_name, entry, instance_dict, module_of, some_of
from ...records.loops import Limits
from .expressions import MOST_BITS, Scope, number
from .parsed_source import text

SCHEDULERS = {"ReduceLROnPlateau": "min_lrs", "CosineAnnealingLR": "eta_min", "CosineAnnealingWarmRestarts": "eta_min"}
MOST_LOOKED_AT = 400  # names and attributes among which a scheduler is looked for
MOST_ATTRIBUTES = MOST_GROUPS = 16  # of an object, of an optimizer


def limits(node: ast.expr, scope: Scope) -> Limits | None:
    """None where none is known."""
    if isinstance(node, ast.Call) and text(node.func) == "len" and len(node.args) == 1:
        held = scope.find(node.args[0])
        most = held.maxlen if type(held) is deque else None
        return None if most is None else Limits(least=0, most=most, by="its `maxlen`")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        by = scope.find(node.right)
        whole = type(by) is int and type(scope.find(node.left)) is int and 0 < by.bit_length() < MOST_BITS and by > 0
        return Limits(least=0, most=by - 1, by="a remainder") if whole else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "lr":
        group = scope.find(node.value)
        return _of_rate(group, scope) if type(group) is dict and type(entry(group, "params")) is list else None
    return None


def _of_rate(group: dict[Any, Any], scope: Scope) -> Limits | None:
    """That of the only scheduler there is for the optimizer of this group."""
    found = [each for each in _held(scope) if _place(each, group) is not None]
    if len({id(each) for each in found}) != 1:
        return None
    name, own = class_name(type(found[0])), instance_dict(found[0]) or {}
    least, place = own.get(SCHEDULERS[name]), _place(found[0], group)
    least = least[place] if type(least) is list and place is not None and place < len(least) else least
    value = number(least) if type(least) in (int, float) else None
    return None if value is None else Limits(least=float(value), by=f"`{SCHEDULERS[name]}` of {name}")


def _held(scope: Scope) -> list[Any]:
    """Schedulers among the names and their objects' attributes."""
    named = [value for space in scope.spaces for _, value in some_of(space.items(), MOST_LOOKED_AT)]
    within = [value for each in named for _, value in some_of((instance_dict(each) or {}).items(), MOST_ATTRIBUTES)]
    every = [*named, *within][: 4 * MOST_LOOKED_AT]
    return [each for each in every if module_of(type(each)).startswith("torch.optim.lr_scheduler")]


def _place(scheduler: Any, group: dict[Any, Any]) -> int | None:
    """Of the group among those of its optimizer; None where it is of none, or the scheduler has no such limit."""
    optimizer = (instance_dict(scheduler) or {}).get("optimizer", UNKNOWN)
    groups = (instance_dict(optimizer) or {}).get("param_groups")
    if class_name(type(scheduler)) not in SCHEDULERS or type(groups) is not list:
        return None
    return next((place for place, each in enumerate(groups[:MOST_GROUPS]) if each is group), None)
