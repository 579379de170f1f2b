"""What a loop of the parent's waits for in an object of which this process, forked from it, has a copy of its own.

The parent's functions are still on the stack here, below the start of the process: they never go on in this one. A
`while` that they come to, or are in, tests what only functions change that run in such processes: in the parent it
stays what it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import FrameType

from ... import user_code
from ...objects import UNKNOWN, class_name, ids
from ...records.loops import Copied, Side
from . import parsed_source
from .conditions import condition, names_in, shown
from .expressions import Scope, scope_of
from .parsed_source import FUNCTIONS, Function, beneath, expression, own_nodes, text
from .statements import MAKING, changes, last_part, owner_of, stores

Stack = list[tuple[FrameType, int | None]]
MOST_FRAMES = 4  # of the parent's, in the user's files
MOST_LOOPS = 4  # of a function
_ASKED = frozenset(("get", "items", "keys", "values", "copy", "index", "count"))
_GIVEN = frozenset(("len", "print", "sum", "min", "max", "any", "all", "sorted", "list", "dict", "tuple", "dumps"))
_CONTAINERS = ids(dict, list, set)


def split(stack: Stack) -> tuple[Stack, Stack]:
    """The stack of this process, and what is left on it of its parent's. The innermost comes first in both."""
    for place, (frame, _) in enumerate(stack):
        code = frame.f_code
        if code.co_name == "_bootstrap" and code.co_filename.endswith("/multiprocessing/process.py"):
            return stack[:place], stack[place + 1 :]
    return stack, []


def copied(behind: Stack) -> list[Copied]:
    users = [(frame, line) for frame, line in behind if line and user_code.is_user_file(frame.f_code.co_filename)]
    return [each for frame, line in users[:MOST_FRAMES] for each in _in_function(frame, line or 0)]


def _in_function(frame: FrameType, line: int) -> Iterator[Copied]:
    code = frame.f_code
    tree = parsed_source.tree_of(code.co_filename)
    function = tree if code.co_name == "<module>" else parsed_source.definition(code)
    if tree is None or not isinstance(function, (ast.Module, *FUNCTIONS)):
        return
    later = [each for each in own_nodes(function) if isinstance(each, ast.While) and (each.end_lineno or 0) >= line]
    for loop in later[:MOST_LOOPS]:
        scope = scope_of(frame)
        test = condition(loop.test, scope)
        names = names_in(test)
        if test.kind not in ("compare", "truth", "not") or test.value is None or _is_left(loop) or len(names) > 2:
            continue
        by = [found for name in names if (found := _changed_by(name, tree, function, line, scope)) is not None]
        if by and len(by) == len(names):
            told = next(((name, each) for name, each in zip(names, by, strict=True) if each), None)
            if told is not None:
                held, (inside, statement) = scope.find(_owner(told[0])), told[1]
                yield Copied(
                    tested=Side(text=told[0], value=shown(scope.find(expression(told[0])))),
                    type="" if held is UNKNOWN else class_name(type(held)),
                    owner=text(_owner(told[0])),
                    text=text(loop.test),
                    holds=test.value,
                    loop=(user_code.absolute(code.co_filename), loop.lineno, user_code.name_of(code)),
                    by=parsed_source.first_line(statement),
                    site=(user_code.absolute(code.co_filename), statement.lineno, inside.name),
                )


def _is_left(loop: ast.While) -> bool:
    leaving = (ast.Break, ast.Return, ast.Raise)
    return any(isinstance(each.statement, leaving) for each in beneath(loop.body))


def _owner(name: str) -> ast.expr:
    node = expression(name)
    return node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else node


def _changed_by(
    name: str, tree: ast.Module, function: Function | ast.Module, line: int, scope: Scope
) -> tuple[Function, ast.stmt] | tuple[()] | None:
    """The statement of a child's function that changes it, empty if there is none; None where the parent may do so."""
    node, children = expression(name), children_only(tree)
    after = [each.statement for each in beneath(function.body) if each.statement.lineno >= line]
    if any(changes(statement, name) for statement in after):
        return None
    written = [*stores(tree).get(last_part(node), ()), *(stores(tree).get("[]", ()) if "[" in name else ())]
    for each in children:
        written += [(each, at.statement) for at in beneath(each.body) if changes(at.statement, name) == "append"]
    others = [each for each in written if each[0] not in children and each[0].name not in MAKING]
    if any(each is not function for each, _ in others) or not _stays_here(name, tree, function, scope):
        return None
    found = [each for each in written if each[0] in children]
    return found[0] if found else ()


def _stays_here(name: str, tree: ast.Module, function: Function | ast.Module, scope: Scope) -> bool:
    """Nobody else in the parent has it under another name."""
    node, value = expression(name), scope.find(expression(name))
    if not isinstance(node, ast.Name):
        owner = owner_of(name, scope)
        if owner is None or (id(type(owner)) not in _CONTAINERS and isinstance(node, ast.Subscript)):
            return False
        if id(type(owner)) not in _CONTAINERS:
            return True  # an attribute: all that stores into one of this name was looked at
    elif id(type(value)) not in _CONTAINERS:
        return value is not UNKNOWN and shown(value).kind != "object"
    root = text(_owner(name)) if not isinstance(node, ast.Name) else name
    local = isinstance(function, FUNCTIONS) and _is_local(root, function)
    where = [function] if local else [tree]
    skipped = () if local else children_only(tree)
    return all(_is_read(above) for each in where for above in _mentions(root, each, skipped))


def _is_local(name: str, function: Function) -> bool:
    stored = (node.id for node in own_nodes(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return name in stored


def _mentions(name: str, node: ast.AST, skipped: object, above: tuple[ast.AST, ...] = ()) -> Iterator[list[ast.AST]]:
    """The nodes around each place that reads a name, innermost first."""
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        yield [node, *above]
    for inner in ast.iter_child_nodes(node):
        if not (isinstance(inner, FUNCTIONS) and inner in skipped):  # type: ignore[operator]
            yield from _mentions(name, inner, skipped, (node, *above[:4]))


def _is_read(around: list[ast.AST]) -> bool:
    """It is looked at there, or handed to a process, which gets a copy."""
    node, above, *further = around
    if isinstance(above, ast.Subscript):
        return above.value is node or isinstance(above.ctx, ast.Load)
    if isinstance(above, ast.Attribute):
        called = bool(further) and isinstance(further[0], ast.Call) and further[0].func is above
        return not called or above.attr in _ASKED
    if isinstance(above, (ast.FormattedValue, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.If, ast.While)):
        return True
    calls = [each for each in (above, *further[:2]) if isinstance(each, ast.Call)]
    named = text(calls[0].func).rpartition(".")[2] if calls else ""
    return named.endswith("Process") or (calls[:1] == [above] and named in _GIVEN)


@lru_cache(maxsize=32)
def children_only(tree: ast.Module) -> frozenset[Function]:
    """Functions that are named as the target of a process alone, and those that only these name."""
    mentioned: dict[str, set[Function | str | None]] = {}
    waiting: list[tuple[ast.AST, Function | None]] = [(tree, None)]
    while waiting:
        node, within = waiting.pop()
        if isinstance(node, ast.Call) and text(node.func).endswith("Process"):
            for keyword in node.keywords:
                if keyword.arg == "target" and isinstance(keyword.value, (ast.Name, ast.Attribute)):
                    mentioned.setdefault(last_part(keyword.value).lstrip("."), set()).add("a process")
                else:
                    waiting.append((keyword.value, within))
            waiting += [(each, within) for each in (node.func, *node.args)]
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            mentioned.setdefault(last_part(node).lstrip("."), set()).add(within)
        inside = node if isinstance(node, FUNCTIONS) else within
        waiting += [(each, inside) for each in ast.iter_child_nodes(node)]
    found = {node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and mentioned.get(node.name)}
    before = -1
    while len(found) != before:
        before = len(found)
        found = {each for each in found if all(by == "a process" or by in found for by in mentioned[each.name])}
    return frozenset(found)
