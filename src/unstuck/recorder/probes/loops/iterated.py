"""What a `for` goes through: something that ends by itself, something endless, or something of the user's."""

from __future__ import annotations

import ast
import itertools

from ... import lengths
from . import source_text, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_THROUGH = frozenset(("enumerate", "tqdm", "track", "iter", "progress_bar", "prefetch", "auto"))
_ENDING = frozenset(("range", "islice", "trange", "list", "tuple", "sorted", "reversed", "takewhile", "items", "keys"))
_ENDLESS = frozenset(("count", "cycle"))
_BOUNDED = (list, tuple, dict, set, frozenset, str, bytes, range)


def describe(node: ast.expr, frame: FrameType) -> dict[str, Any]:
    """`ends`: True, False, or None where that is not known from here."""
    if isinstance(node, ast.Call):
        name = source_text.text(node.func).rpartition(".")[2]
        if name in _THROUGH and node.args:
            return describe(node.args[0], frame)
        if name == "zip":
            parts = [describe(part, frame) for part in node.args]
            ends = True if any(part["ends"] for part in parts) else None
            return {"text": source_text.text(node)[:120], "ends": ends}
        ends = (
            True
            if name in _ENDING
            else (False if name in _ENDLESS or (name == "repeat" and len(node.args) == 1) else None)
        )
        return {"text": source_text.text(node)[:120], "ends": ends}
    text = source_text.text(node)[:120]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.Constant)):
        return {"text": text, "ends": True}
    return {"text": text, **_thing(values.find(node, frame))}


def counts(node: ast.For | ast.AsyncFor, frame: FrameType) -> dict[str, Any] | None:
    """The name that counts the rounds of a `for … in enumerate(…)`, and the most it can come to."""
    call = node.iter
    if not (isinstance(call, ast.Call) and source_text.text(call.func) == "enumerate" and len(call.args) == 1):
        return None
    if not isinstance(node.target, ast.Tuple) or not isinstance(node.target.elts[0], ast.Name):
        return None
    thing = values.find(call.args[0], frame)
    if isinstance(thing, values.Unknown):
        return None
    rounds = lengths.loader_length(thing) if hasattr(type(thing), "_get_iterator") else lengths.length(thing)
    return None if rounds is None else {"name": node.target.elts[0].id, "most": rounds - 1}


def _thing(thing: Any) -> dict[str, Any]:
    if isinstance(thing, values.Unknown):
        return {"ends": None}
    kind = type(thing)
    if kind in _BOUNDED or type(thing).__module__ == "numpy":
        return {"ends": True, "type": kind.__name__}
    if kind in (itertools.count, itertools.cycle):
        return {"ends": False, "type": kind.__name__}
    told: dict[str, Any] = {"ends": None, "type": kind.__qualname__, "id": id(thing)}
    if hasattr(kind, "__getitem__") and not hasattr(kind, "__iter__"):
        # The old protocol: indices from 0 up until IndexError; a length does not end it.
        told["by_index"] = True
        told["length"] = lengths.length(thing)
    if kind.__name__ == "DataLoader" or hasattr(kind, "_get_iterator"):
        told["loader"] = True
    return told
