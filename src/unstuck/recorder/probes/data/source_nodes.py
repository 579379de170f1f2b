"""The nodes of a source file: what each stands in, which names get values, and where these are read."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from ..loops.parsed_source import FUNCTIONS, Function, called


class SourceNodes:
    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self.parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.definitions = [node for node in nodes if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
        self.assigned: dict[str, list[ast.expr]] = defaultdict(list)
        self.reads: dict[str, list[ast.Name]] = defaultdict(list)
        self.added: set[str] = set()  # names that something is added to
        self.attributes: dict[str, list[ast.Attribute]] = defaultdict(list)
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.reads[node.id].append(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.attributes[node.attr].append(node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.added.add(node.target.id)
            elif isinstance(node, ast.Assign):
                for name in (target.id for target in node.targets if isinstance(target, ast.Name)):
                    self.assigned[name].append(node.value)
        self._own: dict[ast.AST, set[str]] = {}  # names that a function gives values to

    def name_at(self, node: ast.AST) -> str:
        function = self.function_of(node)
        return "<module>" if function is None else function.name

    def is_repeated(self, node: ast.AST, seen: set[str]) -> bool:
        """It stands in a loop, or in a function that is called in one, or by torch itself."""
        if any(isinstance(above, ast.For | ast.While) for above in self.around(node)):
            return True
        name = self.name_at(node)
        if name in seen:
            return False
        seen.add(name)
        calls = (call for call in self.calls if called(call) == name)
        return name == "forward" or any(self.is_repeated(call, seen) for call in calls)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)

    def function_of(self, node: ast.AST) -> Function | None:
        return next((above for above in self.around(node) if isinstance(above, FUNCTIONS)), None)

    def is_meant(self, read: ast.Name, name: str, function: Function | None) -> bool:
        """The name means there what it means in that function, or in the module."""
        if function is not None:
            return function in self.around(read)
        within = (above for above in self.around(read) if isinstance(above, (*FUNCTIONS, ast.Lambda)))
        return not any(name in self._bound_in(above) for above in within)

    def _bound_in(self, function: ast.AST) -> set[str]:
        if function not in self._own:
            self._own[function] = {name for part in ast.walk(function) if (name := _bound_by(part))}
        return self._own[function]


def _bound_by(node: ast.AST) -> str:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else ""
