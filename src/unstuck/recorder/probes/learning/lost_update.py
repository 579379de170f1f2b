"""The line of an update that is computed and reaches no weight: `p = p - lr * g` gives a name to the result, no more.

Read from the source, and only where it was measured that no weight ever changes. Lost is a result that has no name,
one whose name is not read again, one that every caller drops, and one that is written into a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ... import user_code
from ...records.learning import Lost, LostUpdate
from ..loops.parsed_source import Function, scope_name, scopes
from . import script_lines

MAKES_NEW = ("sub", "subtract", "add", "_foreach_sub", "_foreach_add")
IN_PLACE = ("sub_", "subtract_", "add_", "_foreach_sub_", "_foreach_add_")
COPIES = ("clone", "deepcopy", "copy", "numpy")
NO_USE = ("grad", "requires_grad", "requires_grad_")  # attributes that say nothing about the weight itself
HOPS = 3  # from a gradient to the name it has in the update, from a name to the copy it stands for

Scope = Function | ast.Module
Loop = ast.For | ast.comprehension


def find(files: Iterable[str]) -> LostUpdate | None:
    for file in files:
        tree = script_lines.parsed(file)
        if tree is None:
            continue
        for scope in scopes(tree):
            found = next(lost_in(tree, scope), None)
            if found is not None:
                line, how = found
                return LostUpdate(site=(user_code.absolute(file), line, scope_name(scope)), how=how)
    return None


def lost_in(tree: ast.Module, scope: Scope) -> Iterator[tuple[int, Lost]]:
    own = list(own_nodes(scope))
    gradients = _gradients(own, _arguments(tree, scope))
    for node in own:
        if isinstance(node, ast.Expr):
            if _is_new(node.value, gradients):
                yield node.lineno, "dropped"
            elif _writes_into_copy(node.value, gradients, own):
                yield node.lineno, "copy"
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.op, ast.Sub) and _reads(node.value, gradients) and _is_copy(node.target, node, own):
                yield node.lineno, "copy"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if _makes_new(node.value, gradients) and not is_read(node, node.targets[0].id, tree, scope, own):
                yield node.lineno, "rebound" if _loop_over(node.targets[0].id, own) else "dropped"
        elif isinstance(node, ast.Return) and isinstance(scope, Function) and _returns_new(node, gradients, own):
            yield from ((line, "dropped") for line in _only_dropped(tree, scope.name))


def own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """All that is in a function or module, without the functions in it."""
    waiting: list[ast.AST] = list(reversed(scope.body))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function | ast.ClassDef):
            yield node
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _arguments(tree: ast.Module, scope: Scope) -> set[str]:
    """Names under which a function gets gradients from its callers."""
    if not isinstance(scope, Function):
        return set()
    named = [argument.arg for argument in scope.args.args if argument.arg != "self"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and script_lines.called(node) == scope.name]
    everywhere = _gradients(list(ast.walk(tree)), set()) if calls else set()
    return {name for call in calls for name, given in zip(named, call.args, strict=False) if _reads(given, everywhere)}


def _gradients(own: list[ast.AST], known: set[str]) -> set[str]:
    """Names of gradients: what `autograd.grad` gives or `.grad` holds, and elements and multiples of these."""
    found = set(known)
    for _ in range(HOPS):
        for node in own:
            if isinstance(node, ast.Assign) and _reads(node.value, found, calls=False):
                found.update(each.id for each in node.targets if isinstance(each, ast.Name))
            elif isinstance(node, Loop):
                found.update(_elements(node.target, node.iter, found))
    return found


def _elements(target: ast.expr, given: ast.expr, gradients: set[str]) -> list[str]:
    """Those names of a loop that stand for gradients: `g` in `for p, g in zip(weights, gradients)`."""
    return [name for name, source in gone_through(target, given) if _reads(source, gradients)]


def gone_through(target: ast.expr, given: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each name of a loop, with what it goes through."""
    name = script_lines.called(given) if isinstance(given, ast.Call) else ""
    if name == "zip" and isinstance(target, ast.Tuple) and isinstance(given, ast.Call):
        for part, source in zip(target.elts, given.args, strict=False):
            yield from gone_through(part, source)
    elif name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(given, ast.Call):
        yield from gone_through(target.elts[-1], given.args[0])
    else:
        last = target.elts[-1] if isinstance(target, ast.Tuple) else target  # of `.items()` the value
        if isinstance(last, ast.Name):
            yield last.id, given


def _reads(node: ast.AST, gradients: set[str], *, calls: bool = True) -> bool:
    """It has a gradient in it. Without `calls`: it is one, or a multiple; of a norm, say, that is not so."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and script_lines.called(part) == "grad":
            return True
        if not calls and isinstance(part, ast.Call) and script_lines.called(part) not in ("clone", "detach", "mul"):
            return False
        if isinstance(part, ast.Attribute) and part.attr == "grad" and isinstance(part.ctx, ast.Load):
            return True
        if isinstance(part, ast.Name) and part.id in gradients:
            return True
    return False


def _makes_new(node: ast.AST, gradients: set[str]) -> bool:
    """It computes `weight - rate * gradient`, in a comprehension or by itself."""
    names = set(gradients)
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            names.update(_elements(part.target, part.iter, names))
    return any(_is_new(part, names) for part in ast.walk(node))


def _is_new(node: ast.AST, gradients: set[str]) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return _is_reference(node.left) and isinstance(node.right, ast.BinOp) and _reads(node.right, gradients)
    if isinstance(node, ast.Call) and script_lines.called(node) in MAKES_NEW:
        return any(_reads(each, gradients) for each in _given(node))
    return False


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _returns_new(node: ast.Return, gradients: set[str], own: list[ast.AST]) -> bool:
    made = [each for each in own if isinstance(each, ast.Assign) and _makes_new(each.value, gradients)]
    names = {name for each in made for target in each.targets for name in _names(target)}
    return _makes_new(node, gradients) or not names.isdisjoint(_names(node))


def _is_reference(node: ast.expr) -> bool:
    """`p`, `p.data`, `weights[name]`, `p.detach()`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name)


def is_read(made: ast.Assign, name: str, tree: ast.Module, scope: Scope, own: list[ast.AST]) -> bool:
    """The name that an update was given is used for something."""
    inside = {id(part) for part in ast.walk(made)}
    for part in ast.walk(scope):  # also in functions within
        if isinstance(part, ast.Attribute) and part.attr in NO_USE:
            inside.add(id(part.value))
        if isinstance(part, ast.Global | ast.Nonlocal) and name in part.names:
            return True
    loop = _loop_over(name, own)
    within = ast.walk(loop) if isinstance(loop, ast.For) else ast.walk(tree if isinstance(scope, ast.Module) else scope)
    reads = (
        each for each in within if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    )
    return any(id(each) not in inside and not (loop is not None and each.lineno < made.lineno) for each in reads)


def _loop_over(name: str, own: list[ast.AST]) -> ast.For | None:
    """The loop whose variable the name is."""
    for node in own:
        if isinstance(node, ast.For) and name in _names(node.target):
            return node
    return None


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _writes_into_copy(node: ast.expr, gradients: set[str], own: list[ast.AST]) -> bool:
    """`copy.sub_(rate * gradient)`."""
    if not isinstance(node, ast.Call) or script_lines.called(node) not in IN_PLACE:
        return False
    target = node.func.value if isinstance(node.func, ast.Attribute) else None
    return target is not None and any(_reads(each, gradients) for each in _given(node)) and _is_copy(target, node, own)


def _is_copy(target: ast.expr, update: ast.AST, own: list[ast.AST]) -> bool:
    """What is written to is a copy, which is used for nothing else."""
    if _copies(target):
        return True  # one without a name
    names, made = set(_names(target)[:1]), False
    ignored = {id(part) for part in ast.walk(update)}
    for _ in range(HOPS):
        for node in own:
            if isinstance(node, ast.For):
                sources = [source for name, source in gone_through(node.target, node.iter) if name in names]
            elif isinstance(node, ast.Assign) and names & {
                each.id for each in node.targets if isinstance(each, ast.Name)
            }:
                sources = [node.value]
                ignored.update(id(part) for part in ast.walk(node))
            else:
                continue
            made = made or any(_copies(source) for source in sources)
            if isinstance(node, ast.For):
                names.update(name for source in sources for name in _names(source)[:1])
                ignored.update(id(part) for source in sources for part in ast.walk(source))
    written = [each for each in own if isinstance(each, ast.Name) and each.id in names and id(each) not in ignored]
    return made and not any(isinstance(each.ctx, ast.Load) for each in written)


def _copies(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) and script_lines.called(part) in COPIES for part in ast.walk(node))


def _only_dropped(tree: ast.Module, function: str) -> list[int]:
    """Lines that call a function, where none of them uses what it returns."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and script_lines.called(node) == function]
    dropped = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Expr) and node.value in calls]
    return dropped if len(dropped) == len(calls) else []
