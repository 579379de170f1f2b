"""Modules within modules, read from their own dicts; and layers that a plain list or dict keeps from the optimizer."""

from __future__ import annotations

from . import reach, script_lines, updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def tree(module: Any) -> list[Any]:
    found, seen = [module], {id(module)}
    for each in found:  # it grows
        inside = reach.instance_dict(each) or {}
        for part in list((inside.get("_modules") or {}).values()):
            if part is not None and id(part) not in seen and len(found) < 4000:
                seen.add(id(part))
                found.append(part)
    return found


def own(module: Any) -> list[Any]:
    inside = reach.instance_dict(module) or {}
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
    for name, root, parts in trees:
        if not any(id(p) in unowned for part in parts for p in own(part)):
            continue
        for other_name, other, others in trees:
            if other is root:
                continue
            for part in others:
                kept = _keeps(part, root)
                if kept is not None and len(found) < 64:
                    attribute, container = kept
                    site = script_lines.assigned(type(part), attribute)
                    found.append(
                        {
                            "module": name,
                            "holder": other_name,
                            "kind": type(part).__name__,
                            "attribute": attribute,
                            "container": container,
                            "site": site,
                        }
                    )
    return found


def _keeps(module: Any, wanted: Any) -> tuple[str, str] | None:
    """Attribute of `module`, a list, tuple or dict in which `wanted` is; also one level further in."""
    for name, value in list((reach.instance_dict(module) or {}).items()):
        if type(value) not in (list, tuple, dict) or type(name) is not str:
            continue
        for inner in _values(value):
            if inner is wanted or any(deeper is wanted for deeper in _values(inner)):
                return name, type(value).__name__
    return None


def _values(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return list(value)[:256]
    return list(value.values())[:256] if type(value) is dict else []
