"""What a `for` goes through: something that ends by itself, something endless, or something of the user's."""

from __future__ import annotations

import ast
import itertools

from ... import lengths
from ...objects import UNKNOWN, class_name, ids, in_class
from ...records.loops import Counter, Iterated
from . import source_text
from .values import is_numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .values import Scope

_THROUGH = frozenset(("enumerate", "tqdm", "track", "iter", "progress_bar", "prefetch", "auto"))
_ENDING = frozenset(("range", "islice", "trange", "list", "tuple", "sorted", "reversed", "takewhile", "items", "keys"))
_ENDLESS = frozenset(("count", "cycle"))
_BOUNDED = ids(list, tuple, dict, set, frozenset, str, bytes, range)
_ROUND = ids(itertools.count, itertools.cycle)
_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.Constant)


def describe(node: ast.expr, scope: Scope) -> Iterated:
    text = source_text.text(node)[:120]
    if isinstance(node, ast.Call):
        name = source_text.text(node.func).rpartition(".")[2]
        if name in _THROUGH and node.args and source_text.is_small(node):
            return describe(node.args[0], scope)
        return Iterated(text=text, ends=_call_ends(name, node.args, scope))
    if isinstance(node, _WRITTEN_OUT):
        return Iterated(text=text, ends=True)
    return _thing(scope.find(node), text)


def _call_ends(name: str, arguments: list[ast.expr], scope: Scope) -> bool | None:
    if name == "zip":
        return True if any(describe(part, scope).ends for part in arguments[:16]) else None
    if name in _ENDING:
        return True
    return False if name in _ENDLESS or (name == "repeat" and len(arguments) == 1) else None


def counts(node: ast.For | ast.AsyncFor, scope: Scope) -> Counter | None:
    """The name that counts the rounds of a `for … in enumerate(…)`, and the most it can come to."""
    call = node.iter
    if not (isinstance(call, ast.Call) and source_text.text(call.func) == "enumerate" and len(call.args) == 1):
        return None
    if not isinstance(node.target, ast.Tuple) or not isinstance(node.target.elts[0], ast.Name):
        return None
    thing = scope.find(call.args[0])
    rounds = None if thing is UNKNOWN else lengths.length(thing)
    return None if rounds is None else Counter(name=source_text.text(node.target.elts[0]), most=rounds - 1)


def _thing(thing: Any, text: str) -> Iterated:
    if thing is UNKNOWN:
        return Iterated(text=text)
    kind = type(thing)
    if id(kind) in _BOUNDED or is_numpys(thing):
        return Iterated(text=text, ends=True, type=class_name(kind))
    if id(kind) in _ROUND:
        return Iterated(text=text, ends=False, type=class_name(kind))
    by_index = in_class(kind, "__getitem__") is not None and in_class(kind, "__iter__") is None
    length = lengths.length(thing) if by_index else None
    return Iterated(text=text, type=class_name(kind), by_index=by_index, length=length)
