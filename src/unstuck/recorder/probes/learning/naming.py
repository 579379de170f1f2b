"""Names of parameters: found once, from the modules that are alive and the names the training has for them."""

from __future__ import annotations

import gc
import sys
import weakref

from ... import objects, user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

MODULES = 4000
PARAMETERS = 5000


class Named:
    """Parameters by identity, with the module each belongs to."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self._roots: list[tuple[str, weakref.ref[Any]]] = []

    @property
    def roots(self) -> list[tuple[str, Any]]:
        """Outermost modules that are still there; none is kept alive by us."""
        return [(name, module) for name, ref in self._roots if (module := ref()) is not None]

    def add_root(self, name: str, module: Any) -> None:
        self._roots.append((name, weakref.ref(module)))

    def name(self, parameter: Any) -> str:
        return self.names.get(id(parameter), "")


def find(frame: FrameType | None) -> Named:
    """Walk the modules alive: those that no other module has are roots. `frame`: whose names roots are called by."""
    module_type = sys.modules["torch"].nn.Module
    kinds = _kinds(module_type)
    alive = [thing for thing in gc.get_objects() if type(thing) in kinds][:MODULES]
    below = {id(part) for module in alive for part in _parts(module)}
    found = Named()
    called = _called(frame)
    for module in alive:
        if id(module) in below:
            continue
        name = called.get(id(module)) or type(module).__name__
        parameters = list(_parameters(module, name, set()))
        if not parameters:
            continue
        found.add_root(name, module)
        for path, kind, parameter in parameters:
            if len(found.names) < PARAMETERS:
                found.names.setdefault(id(parameter), path)
                found.kinds.setdefault(id(parameter), kind)
    return found


def _kinds(kind: type) -> set[type]:
    """It and all classes made from it: among millions of objects a look into a set is quick."""
    found: set[type] = {kind}
    waiting: list[type] = [kind]
    while waiting:
        subclasses: list[type] = type.__subclasses__(waiting.pop())
        new = set(subclasses) - found
        found |= new
        waiting.extend(new)
    return found


def _parts(module: Any) -> list[Any]:
    own = objects.instance_dict(module) or {}
    parts = own.get("_modules")
    return [part for part in parts.values() if part is not None] if isinstance(parts, dict) else []


def _parameters(module: Any, path: str, seen: set[int]) -> Any:
    """(name, class of its module, parameter), also of modules within; nothing of the user's is called."""
    if id(module) in seen:
        return
    seen.add(id(module))
    own = objects.instance_dict(module) or {}
    for name, parameter in list((own.get("_parameters") or {}).items()):
        if parameter is not None:
            yield f"{path}.{name}", type(module).__name__, parameter
    for name, part in list((own.get("_modules") or {}).items()):
        if part is not None:
            yield from _parameters(part, f"{path}.{name}", seen)


def _called(frame: FrameType | None) -> dict[int, str]:
    """Names that the user's frames have for what they hold: `model`, `self.net`, `layers[2]`."""
    names: dict[int, str] = {}
    here = frame
    while here is not None:
        if user_code.is_user_file(here.f_code.co_filename):
            for name, value in _holding(here).items():
                names.setdefault(id(value), name)
                for part, inner in _inside(value):
                    names.setdefault(id(inner), f"{name}{part}")
        here = here.f_back
    return names


def _holding(frame: FrameType) -> dict[str, Any]:
    local = objects.locals_of(frame) if frame.f_code.co_flags & objects.FAST == objects.FAST else {}
    return {**{name: value for name, value in frame.f_globals.items() if not name.startswith("__")}, **local}


def _inside(value: Any) -> list[tuple[str, Any]]:
    """One step into lists and objects: enough to call a layer by the list it is kept in."""
    kind = type(value)
    if kind in (list, tuple):
        return [(f"[{place}]", inner) for place, inner in enumerate(value[:64])]
    own = objects.instance_dict(value) if kind.__module__ != "builtins" else None
    found: list[tuple[str, Any]] = []
    for name, inner in list((own or {}).items())[:64]:
        if type(name) is not str or name.startswith("__"):
            continue
        found.append((f".{name}", inner))
        if type(inner) in (list, tuple):
            found += [(f".{name}[{place}]", part) for place, part in enumerate(inner[:64])]
        elif type(inner) is dict:
            found += [(f".{name}[{key!r}]", part) for key, part in list(inner.items())[:64] if type(key) in (str, int)]
    return found
