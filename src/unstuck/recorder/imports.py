"""Waits for modules without importing them: runs a function once a named module has been executed."""

from __future__ import annotations

import sys

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Install = Callable[[ModuleType], object]

_waiting: dict[str, list[Install]] = {}


class _Finder:
    """First on sys.meta_path; says "not mine" to every name but those waited for."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is _Finder or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _tap(name, spec)
                return spec
        return None


def when_imported(name: str, install: Install) -> None:
    """Call `install(module)` right after `name` is executed, or now if it already was."""
    if name in sys.modules:
        _run(name, install, sys.modules[name])
        return
    _waiting.setdefault(name, []).append(install)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
        guard.on("imports", remove)


def remove() -> None:
    _waiting.clear()
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)


def _tap(name: str, spec: ModuleSpec) -> None:
    loader: Any = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        try:
            del loader.exec_module
        except AttributeError:
            pass
        execute(module)
        for install in _waiting.pop(name, ()):
            _run(name, install, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader with slots: nothing lost but this seam
        guard.off("seam " + name, TypeError("its loader cannot be tapped"))


def _run(name: str, install: Install, module: ModuleType) -> None:
    try:
        install(module)
    except Exception as fault:
        guard.off("seam " + name, fault)
