"""Results of tasks that are gathered as they finish, while something else goes through the tasks in their own order:
the two no longer belong together. Read from the source, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ... import user_code
from ...records import Site
from ..loops import parsed_source
from ..loops.parsed_source import FUNCTIONS, Function, called, mentions, own_nodes, scopes, text, tree_of

AS_THEY_FINISH = ("as_completed", "imap_unordered")
SORTS = frozenset(("sort", "sorted"))
KEYED = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.DictComp)
"""What may say which task a result belongs to."""


def gathered(files: Iterable[str]) -> Site | None:
    """The line that gathers them, where nothing in it or in the results says which task each belongs to."""
    for file in dict.fromkeys(files):
        tree = tree_of(file) if any(mentions(file, word) for word in AS_THEY_FINISH) else None
        if tree is None:
            continue
        for scope in scopes(tree):
            for line in _lines(tree, scope):
                return user_code.absolute(file), line, parsed_source.scope_name(scope)
    return None


def _lines(tree: ast.Module, scope: Function | ast.Module) -> Iterator[int]:
    nodes = list(own_nodes(scope))
    sorts = any(called(node) in SORTS for node in nodes)
    for node in [] if sorts else nodes:
        source = _source(node)
        if source is None or not _is_bare(node, source):
            continue
        task = _task(nodes, source)
        if task is not None and _has_plain_result(tree, task[0]) and _is_read_again(tree, scope, task[1]):
            yield node.lineno  # type: ignore[attr-defined]  # an expression or a `for`


def _source(node: ast.AST) -> ast.Call | None:
    """The call that gives results as they finish, of a `for`, a comprehension or a `list(…)`."""
    if isinstance(node, ast.Call):
        inner = node.args[0] if node.args and called(node) in ("list", "tuple") else None
        return inner if isinstance(inner, ast.Call) and called(inner) == "imap_unordered" else None
    one = isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1
    inner = node.generators[0].iter if one else node.iter if isinstance(node, ast.For) else None  # type: ignore[attr-defined]
    while isinstance(inner, ast.Call) and called(inner) not in AS_THEY_FINISH:
        inner = inner.args[0] if inner.args else None  # a progress bar
    return inner if isinstance(inner, ast.Call) and len(inner.args) > (called(inner) == "imap_unordered") else None


def _is_bare(node: ast.AST, source: ast.Call) -> bool:
    """Each result is put behind the others as it is, and nothing else is done with it or its task."""
    if isinstance(node, ast.Call):
        return True
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        target, element = node.generators[0].target, node.elt
        return isinstance(target, ast.Name) and _holds_once(element, [element], target.id)
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
        return False
    name = node.target.id
    for statement in node.body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        if isinstance(statement, ast.Assign) and value is not None and _holds_once(value, node.body, name):
            made = statement.targets[0]
            name = made.id if isinstance(made, ast.Name) else ""
        if isinstance(value, ast.Call) and called(value) == "append" and len(value.args) == 1:
            return bool(name) and _holds_once(value.args[0], node.body, name)
    return False


def _holds_once(value: ast.expr, within: list[ast.stmt] | list[ast.expr], name: str) -> bool:
    """The only place where the name is read."""
    reads = [node for each in within for node in ast.walk(each) if _reads(node, name)]
    return isinstance(value, (ast.Name, ast.Call, ast.Await)) and len(reads) == 1 and reads[0] in ast.walk(value)


def _task(nodes: list[ast.AST], source: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The function that each task runs, and what the tasks are made from."""
    if called(source) == "imap_unordered":
        return source.args[0], source.args[1]
    jobs = source.args[0]
    for node in nodes:
        if isinstance(jobs, ast.Name) and isinstance(node, ast.Assign) and text(node.targets[0]) == jobs.id:
            jobs = node.value
    if not isinstance(jobs, (ast.ListComp, ast.GeneratorExp, ast.SetComp)) or not isinstance(jobs.elt, ast.Call):
        return None
    call, over = jobs.elt, jobs.generators[0].iter
    if called(call) == "create_task" and call.args and isinstance(call.args[0], ast.Call):
        call = call.args[0]
    submitted = called(call) in ("submit", "run_in_executor") and call.args
    return (call.args[called(call) == "run_in_executor"] if submitted else call.func), over


def _has_plain_result(tree: ast.Module, function: ast.expr) -> bool:
    """It gives back no pair, and no object of a class of its own: these could say what the result belongs to."""
    name = parsed_source.last_name(function)
    written = [each for each in ast.walk(tree) if isinstance(each, FUNCTIONS) and each.name == name]
    values = [node.value for each in written for node in own_nodes(each) if isinstance(node, ast.Return)]
    names = {value.id for value in values if isinstance(value, ast.Name)}
    for node in (node for each in written for node in own_nodes(each) if isinstance(node, ast.Assign)):
        values += [node.value for target in node.targets if text(target) in names]
    return bool(values) and not any(value is None or isinstance(value, KEYED) or _makes(value) for value in values)


def _makes(value: ast.expr) -> bool:
    name = called(value) or text(value.func) if isinstance(value, ast.Call) else ""
    return name[:1].isupper() or name == "dict"


def _is_read_again(tree: ast.Module, scope: Function | ast.Module, tasks: ast.expr, deep: bool = True) -> bool:
    """Something goes through the tasks once more: here, or where they come from."""
    reads = [node for node in own_nodes(scope) if isinstance(node, type(tasks)) and text(node) == text(tasks)]
    counted = [node for node in own_nodes(scope) if called(node) in ("len", "print")]
    idle = {part for call in counted for part in ast.walk(call)}
    reads = [node for node in reads if node not in idle and isinstance(getattr(node, "ctx", None), ast.Load)]
    if len(reads) > 1:
        return True
    if not deep or isinstance(scope, ast.Module) or not isinstance(tasks, ast.Name):
        return False
    known = [argument.arg for argument in scope.args.args]
    place = known.index(tasks.id) if tasks.id in known else None
    for above in scopes(tree) if place is not None else ():
        calls = [node for node in own_nodes(above) if isinstance(node, ast.Call) and called(node) == scope.name]
        given = [call.args[place] for call in calls if place is not None and place < len(call.args)]
        if any(_is_read_again(tree, above, each, deep=False) for each in given):
            return True
    return False


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
