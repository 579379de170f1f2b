"""Keeps torch's compiler off our own frames: run below compiled code, they are passed over as torch's own are.

Our hooks stay traceable where they lie inside what is compiled; there they return at once.
"""

from __future__ import annotations

import sys
from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

GUARDS = ("DisableTorchFunction", "_DisableTorchDispatch")
"""Of torch's core: what is done beneath them reaches neither function modes nor dispatch modes."""


def has_compiled() -> bool:
    """Something was compiled in this process: its frames are not for anybody to follow."""
    counted = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return isinstance(counted, dict) and bool(counted.get("frames"))


def pass_over(modules: tuple[ModuleType, ...]) -> None:
    """Tell the compiler's frame hook to leave every function of these modules alone. Needs torch's C part only."""
    _skip(_codes(modules))


def _skip(codes: list[CodeType]) -> None:
    frames = sys.modules["torch"]._C._dynamo.eval_frame
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)
        for code in codes:
            frames.set_code_exec_strategy(code, skip)
    else:  # before torch 2.7
        for code in codes:
            frames.skip_code(code)


def stand_aside(function: FunctionType) -> None:
    """Have warnings that torch gives to its caller point past this wrapper, at the caller's own line: they pass over
    frames of the import system, which Python knows by the name of their file."""
    function.__code__ = function.__code__.replace(co_filename="<unstuck, as importlib._bootstrap>")
    _skip([function.__code__])


class Hidden:
    """While this is open, the compiler sees no frame of this thread, and no mode of the user's an operation."""

    __slots__ = ("_before", "_guards", "_set")

    def __enter__(self) -> Any:
        torch = sys.modules.get("torch")
        core = getattr(torch, "_C", None)
        frames = getattr(getattr(core, "_dynamo", None), "eval_frame", None)
        self._set = None if frames is None else frames.set_eval_frame
        self._before = None if self._set is None else self._set(None)
        self._guards = [kind() for name in GUARDS if (kind := getattr(core, name, None)) is not None]
        for guard in self._guards:
            guard.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        for guard in reversed(self._guards):
            guard.__exit__(None, None, None)
        if self._set is not None:
            self._set(self._before)


def pass_over_ours(package: str) -> None:
    """Tell the compiler to leave all that is loaded of the recorder alone."""
    if "torch" in sys.modules:
        pass_over(tuple(sys.modules[name] for name in list(sys.modules) if name.startswith(f"{package}.")))


def _is_of(value: object, module: ModuleType) -> bool:
    return isinstance(value, (FunctionType, type)) and value.__module__ == module.__name__


def _codes(modules: tuple[ModuleType, ...]) -> list[CodeType]:
    """Code of the functions and methods of each module, and of those made inside them."""
    values = [value for module in modules for value in vars(module).values() if _is_of(value, module)]
    members = [member for kind in values if isinstance(kind, type) for member in vars(kind).values()]
    methods = [m.fget if isinstance(m, property) else getattr(m, "__func__", m) for m in members]
    found = [value.__code__ for value in (*values, *methods) if isinstance(value, FunctionType)]
    for code in found:  # it grows
        found.extend(inner for inner in code.co_consts if isinstance(inner, CodeType))
    return found
