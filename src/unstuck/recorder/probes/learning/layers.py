"""Modules within modules, read from their own dicts: nothing that a module defines itself is run."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ... import objects

MODULES = 4000


def _table(module: Any, name: str) -> dict[str, Any]:
    found = (objects.instance_dict(module) or {}).get(name)
    if type(found) is not dict and type(found) is not OrderedDict:
        return {}
    return {key: value for key, value in objects.some_of(dict.items(found), MODULES) if value is not None}


def parts(module: Any) -> dict[str, Any]:
    """The modules that it has itself, by name."""
    return _table(module, "_modules")


def named(module: Any) -> dict[str, Any]:
    """The parameters that it has itself, by name."""
    return _table(module, "_parameters")


def own(module: Any) -> list[Any]:
    return list(named(module).values())


def buffer(module: Any, name: str) -> Any:
    return _table(module, "_buffers").get(name)


def is_training(module: Any) -> bool:
    return (objects.instance_dict(module) or {}).get("training") is not False


def tree(module: Any, name: str = "") -> list[tuple[str, Any]]:
    """(name, module) of it and all within, each once."""
    found, seen = [(name, module)], {id(module)}
    for path, each in found:  # it grows
        for part, inner in parts(each).items():
            if id(inner) not in seen and len(found) < MODULES:
                seen.add(id(inner))
                found.append((f"{path}.{part}", inner))
    return found


def parameters(module: Any) -> list[Any]:
    """Its own and those of all modules within."""
    return [parameter for _, part in tree(module) for parameter in own(part)]
