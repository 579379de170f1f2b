"""Waits for modules without importing them: runs a function once a named module has been executed."""

import sys

from . import probes

_waiting = {}


class _Finder:
    """First on sys.meta_path; says "not mine" to every name but those waited for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
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


def when_imported(name, install):
    """Call `install(module)` right after `name` is executed, or now if it already was."""
    if name in sys.modules:
        _run(name, install, sys.modules[name])
        return
    _waiting.setdefault(name, []).append(install)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
        probes.on("imports", remove)


def remove():
    _waiting.clear()
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)


def _tap(name, spec):
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module):
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
        probes.off("seam " + name, TypeError("its loader cannot be tapped"))


def _run(name, install, module):
    try:
        install(module)
    except Exception as fault:
        probes.off("seam " + name, fault)
