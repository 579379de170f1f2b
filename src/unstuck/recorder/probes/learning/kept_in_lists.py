"""Layers that no optimizer has because a plain list or dict of a module keeps them."""

from __future__ import annotations

from typing import Any

from ... import objects
from ...records.learning import KeptInList
from . import layers
from .naming import Names
from .script_lines import ScriptLines

MOST = 64
INSIDE = 256
"""Elements of a list that are looked at."""


def find(names: Names, unowned: set[int], lines: ScriptLines) -> list[KeptInList]:
    """`unowned`: parameters that a graph ends in and no optimizer has."""
    if not unowned:
        return []
    found: list[KeptInList] = []
    roots = names.roots
    kept = _kept(roots)
    for name, root in roots:
        if id(root) not in kept or not any(id(p) in unowned for p in layers.parameters(root)):
            continue
        for holder, part, attribute, container in kept[id(root)]:
            if holder != name and len(found) < MOST:
                site, kind = lines.assigned(type(part), attribute), objects.class_name(type(part))
                about = KeptInList(
                    module=name, holder=holder, kind=kind, attribute=attribute, container=container, site=site
                )
                found.append(about)
    return found


def _kept(roots: list[tuple[str, Any]]) -> dict[int, list[tuple[str, Any, str, str]]]:
    """By the identity of what a plain list, tuple or dict of a module holds, also one level further in: the name of
    that module's root, the module, the attribute, the kind of container."""
    found: dict[int, list[tuple[str, Any, str, str]]] = {}
    for holder, root in roots:
        for _, part in layers.tree(root):
            for attribute, value in list((objects.instance_dict(part) or {}).items()):
                if type(value) not in (list, tuple, dict) or type(attribute) is not str:
                    continue
                for key in {id(each) for inner in _values(value) for each in (inner, *_values(inner))}:
                    found.setdefault(key, []).append((holder, part, attribute, type(value).__name__))
    return found


def _values(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return list(value[:INSIDE])
    return list(value.values())[:INSIDE] if type(value) is dict else []
