"""The loops the training is in, and what their conditions say. Loaded on request only.

For each frame of the user's on the stack: the `while` and `for` around its line, their tests piece by piece, the ways
out of them and what guards these, and what inside them changes the names that are tested.
"""

from __future__ import annotations

import ast

from ... import flight, user_code
from ... import layout as at
from . import inlined, iterated, loop_exits, source_text, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

FRAMES = 12
DEEP = 3
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def describe(frame: FrameType) -> dict[str, object] | None:
    """Everything about the loops around this moment; None where there are none in the user's own code."""
    try:
        found = _frames(frame)
    finally:
        values.forget()
    if not found:
        return None
    w = flight.words
    return {"step": flight.steps(), "passes": flight.words[at.W_LOADERS], "batch": w[at.W_BATCH], "frames": found}


def _frames(frame: FrameType) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    here: FrameType | None = frame
    while here is not None and len(found) < FRAMES:
        if user_code.is_user_file(here.f_code.co_filename):
            loops = _loops(here)
            if loops:
                found.append(_place(here, loops))
        here = here.f_back
    return found


def _place(frame: FrameType, loops: list[dict[str, object]]) -> dict[str, object]:
    code = frame.f_code
    return {
        "file": user_code.absolute(code.co_filename),
        "line": frame.f_lineno,
        "function": user_code.name_of(code),
        "id": id(frame),
        "generator": bool(code.co_flags & 0x220),  # a generator, or an asynchronous one: whoever draws from it decides
        "local": sorted(code.co_varnames) if code.co_name != "<module>" else None,
        "loops": loops,
    }


def _loops(frame: FrameType) -> list[dict[str, object]]:
    tree = inlined.tree_of(frame.f_code.co_filename)
    if tree is None or frame.f_lineno is None:
        return []
    scope, around = _around(tree, frame.f_lineno)
    return [_loop(node, scope, tree, frame) for node in around]


def _loop(
    node: ast.While | ast.For | ast.AsyncFor, scope: ast.AST, tree: ast.Module, frame: FrameType
) -> dict[str, object]:
    leaving = loop_exits.ways_out(node, frame)
    told: dict[str, object] = {
        "kind": "while" if isinstance(node, ast.While) else "for",
        "first": node.lineno,
        "header": node.body[0].lineno - 1 if node.body[0].lineno > node.lineno else node.lineno,
        "last": node.body[-1].end_lineno or node.lineno,
        "exits": leaving,
    }
    if isinstance(node, ast.While):
        told["text"] = f"while {source_text.text(node.test)}"[:200]
        told["test"] = values.condition(node.test, frame)
        tested = values.names(node.test)
    else:
        told["text"] = f"for {source_text.text(node.target)} in {source_text.text(node.iter)}"[:200]
        told["iterates"] = iterated.describe(node.iter, frame)
        tested = values.names(node.target)
        told["targets"] = {name: values.shown(values.find(source_text.expression(name), frame)) for name in tested}
        told["counts"] = iterated.counts(node, frame)
    for way in leaving:
        tested += [name for guard in way["guards"] for name in loop_exits.names_in(guard)]
    assigned: dict[str, list[dict[str, Any]]] = {}
    wanted = set(tested)
    for _ in range(DEEP):  # what is tested, then what decides whether that is changed
        assigned.update(loop_exits.assignments(node, scope, tree, wanted, frame))
        guards = [guard for given in assigned.values() for each in given for guard in each["guards"]]
        wanted = {name for guard in guards for name in loop_exits.names_in(guard)} - assigned.keys()
    told["assigned"] = assigned
    told["accounted"] = [
        name for name in assigned if not name.isidentifier() and loop_exits.owner_of(name, frame) is not None
    ]
    return told


def _around(tree: ast.Module, line: int) -> tuple[ast.AST, list[ast.While | ast.For | ast.AsyncFor]]:
    """The innermost scope around a line, and its loops around it, outermost first."""
    scope: ast.AST = tree
    loops: list[ast.While | ast.For | ast.AsyncFor] = []
    waiting: list[ast.AST] = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop(0)
        first = getattr(node, "lineno", None)
        if first is not None and not first <= line <= (node.end_lineno or first):  # type: ignore[attr-defined]
            continue
        if isinstance(node, _SCOPES):
            body = node.body if isinstance(node.body, list) else [node.body]
            if line >= body[0].lineno:
                scope, loops, waiting = node, [], list(ast.iter_child_nodes(node))
            continue
        if isinstance(node, (ast.While, ast.For, ast.AsyncFor)) and line <= (node.body[-1].end_lineno or line):
            loops.append(node)
        waiting = [*ast.iter_child_nodes(node), *waiting]
    return scope, loops
