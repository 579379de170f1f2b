"""A second network that is meant to follow the one that learns, and never changes: `tp = (1 - tau) * tp + tau * p` in a
loop over its parameters gives a name to the result, no more.

The source is read only where there are parameters that no loss reaches and no optimizer has; what is found holds only
while these are seen to stay what they were.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from ... import flight, user_code
from ...records import Site
from ...records.learning import StillCopy
from ..loops.parsed_source import Function, last_name, scope_name, scopes
from . import lost_update, naming, script_lines
from .lost_update import Scope
from .naming import Names
from .parameters import state_of

MAX_LOOKS = 2  # at the source
MAX_BYTES = 200_000  # of all files together
MAX_WATCHED = 8  # parameters
WRAPS = ("list", "tuple", "iter", "enumerate")


class StillCopies:
    def __init__(self) -> None:
        self._looks = MAX_LOOKS
        self._watched: list[tuple[Any, tuple[int, object]]] = []  # its parameters, weakly, and what they were
        self._found: StillCopy | None = None

    def look(self, names: Names, trained: set[int], frame: FrameType) -> None:
        """`trained`: parameters that a loss reaches or an optimizer has."""
        if self._found is not None or not self._looks or all(key in trained for key in names.names):
            return
        self._looks -= 1
        for site, last, copied in _lost(script_lines.user_files(frame)):
            modules, others = _called(names, last), _called(names, copied)
            parameters = naming.all_parameters(modules[0][1]) if len(modules) == 1 else []
            if parameters and not any(id(parameter) in trained for parameter in parameters):
                self._watched = [state_of(each) for each in parameters[:: -(-len(parameters) // MAX_WATCHED)]]
                if any(state[1] is None for _, state in self._watched):
                    return  # on a GPU: what `.data` changes cannot be seen without waiting for it
                self._found = StillCopy(
                    site=site, name=modules[0][0], other=others[0][0] if len(others) == 1 else "",
                    parameters=len(parameters), since=flight.steps(),
                )  # fmt: skip
                return

    def record(self) -> StillCopy | None:
        """None: it has changed, or is gone."""
        now = [state_of(parameter) for ref, _ in self._watched if (parameter := ref()) is not None]
        return self._found if [state for _, state in now] == [state for _, state in self._watched] else None


def _called(names: Names, last: str) -> list[tuple[str, Any]]:
    """Modules whose name ends so, each with its whole name."""
    found = {id(part): (path, part) for name, root in names.roots for path, part in naming.tree(root, name)}
    return [(path, part) for path, part in found.values() if path.rpartition(".")[2] == last]


def _lost(files: Iterable[str]) -> Iterator[tuple[Site, str, str]]:
    """Lines that give the new weights to the variable of a loop; the last names of the network that should get them and
    of the one that they come from."""
    room = MAX_BYTES
    for file in dict.fromkeys(files):
        room -= os.path.getsize(file) if os.path.isfile(file) else 0
        tree = script_lines.parsed(file) if room >= 0 else None
        for scope in scopes(tree) if tree is not None else ():
            for line, target, other in lost_in(tree, scope):  # type: ignore[arg-type]
                yield (user_code.absolute(file), line, scope_name(scope)), target, other


def lost_in(tree: ast.Module, scope: Scope) -> Iterator[tuple[int, str, str]]:
    own = list(lost_update.own_nodes(scope))
    for loop in (node for node in own if isinstance(node, ast.For)):
        sources = dict(lost_update.gone_through(loop.target, loop.iter))
        for node in ast.walk(loop):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            read = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
            others = [each for each in sources if each != name and each in read]
            if name not in read or name not in sources or not others or _writes(node.value):
                continue
            if not lost_update.is_read(node, name, tree, scope, own):
                for target in _last_names(sources[name], tree, scope):
                    for other in _last_names(sources[others[0]], tree, scope):
                        yield node.lineno, target, other


def _writes(value: ast.expr) -> bool:
    """It changes something in place: `tp.mul_(1 - tau)`."""
    calls = (script_lines.called(part) for part in ast.walk(value) if isinstance(part, ast.Call))
    return any(name.endswith("_") for name in calls)


def _last_names(source: ast.expr, tree: ast.Module, scope: Scope) -> list[str]:
    """Of the networks whose parameters these are: `target` of `self.target.parameters()`; of an argument, what callers
    pass."""
    name = _last_name(source)
    named = [each.arg for each in scope.args.args if each.arg != "self"] if isinstance(scope, Function) else []
    if name not in named or not isinstance(scope, Function):
        return [name]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and script_lines.called(node) == scope.name]
    place = named.index(name)
    return [_last_name(call.args[place]) for call in calls if place < len(call.args)]


def _last_name(source: ast.expr) -> str:
    while isinstance(source, ast.Call):
        if isinstance(source.func, ast.Attribute):
            source = source.func.value
        elif script_lines.called(source) in WRAPS and source.args:
            source = source.args[0]
        else:
            return ""
    return last_name(source)
