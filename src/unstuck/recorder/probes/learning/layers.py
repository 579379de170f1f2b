"""Modules within modules, read from their own dicts; and layers that a plain list or dict keeps from the optimizer."""

from __future__ import annotations

from ... import objects
from . import script_lines, updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def tree(module: Any) -> list[Any]:
    found, seen = [module], {id(module)}
    for each in found:  # it grows
        inside = objects.instance_dict(each) or {}
        for part in list((inside.get("_modules") or {}).values()):
            if part is not None and id(part) not in seen and len(found) < 4000:
                seen.add(id(part))
                found.append(part)
    return found


def own(module: Any) -> list[Any]:
    inside = objects.instance_dict(module) or {}
    return [parameter for parameter in list((inside.get("_parameters") or {}).values()) if parameter is not None]


def kept_in(names: Any, held: dict[int, int]) -> list[dict[str, object]]:
    """Modules with parameters that no optimizer has, and that a plain list or dict of another module keeps."""
    unowned = {
        key for key, each in updates.parameters.items() if each.in_graph and each.owner is None and key not in held
    }
    if not unowned:
        return []
    found: list[dict[str, object]] = []
    trees = [(name, module, tree(module)) for name, module in names.roots]
    kept = _kept(trees)
    for name, root, parts in trees:
        if len(found) >= 64 or id(root) not in kept or not any(id(p) in unowned for part in parts for p in own(part)):
            continue
        for holder, part, attribute, container in kept[id(root)]:
            if holder != name:
                site = script_lines.assigned(type(part), attribute)
                about = {"kind": type(part).__name__, "attribute": attribute, "container": container, "site": site}
                found.append({"module": name, "holder": holder, **about})
    return found[:64]


def _kept(trees: list[tuple[str, Any, list[Any]]]) -> dict[int, list[tuple[str, Any, str, str]]]:
    """By the identity of what a plain list, tuple or dict of a module holds, also one level further in: the name of
    that module's root, the module, the attribute, the kind of container."""
    found: dict[int, list[tuple[str, Any, str, str]]] = {}
    for holder, _, parts in trees:
        for part in parts:
            for attribute, value in list((objects.instance_dict(part) or {}).items()):
                if type(value) not in (list, tuple, dict) or type(attribute) is not str:
                    continue
                inside = {id(each): each for inner in _values(value) for each in (inner, *_values(inner))}
                for key in inside:
                    found.setdefault(key, []).append((holder, part, attribute, type(value).__name__))
    return found


def _values(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return list(value)[:256]
    return list(value.values())[:256] if type(value) is dict else []
