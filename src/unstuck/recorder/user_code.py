"""Places in the user's code: where something was called from, where something is written."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType
    from typing import Any

    from .records import Site

MOST_FRAMES = 5000  # of a stack that are gone down
LOADERS = ("/torch/utils/data/", "/torchdata/stateful_dataloader/", "/torchdata/nodes/")


def call_site() -> Site | None:
    """File, line and function of the code that asked, above torch and us."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(OURS) and not any(part in file for part in LOADERS):
            return absolute(file), frame.f_lineno, name_of(frame.f_code)
        frame = frame.f_back
    return None


def call_site_of(inside: tuple[str, ...]) -> Site | None:
    """The same, above torch's files whose paths hold one of these."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((HERE, "<unstuck")) and not any(part in file for part in inside):
            return absolute(file), frame.f_lineno, name_of(frame.f_code)
        frame = frame.f_back
    return None


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """This frame and its callers, the innermost first; of a very deep stack only the inner ones."""
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def site_of(frame: FrameType | None) -> Site | None:
    """The innermost line of the user's own files, from this frame up."""
    user = next((caller for caller in frames(frame) if is_user_file(caller.f_code.co_filename)), None)
    return None if user is None else (absolute(user.f_code.co_filename), user.f_lineno, name_of(user.f_code))


def absolute(path: str) -> str:
    """Without os.path, whose functions the compiler would take for the user's where a hook runs in compiled code."""
    return path if path[:1] in ("/", "<") else f"{_FOLDER}/{path.removeprefix('./')}"


def name_of(code: CodeType) -> str:
    return code.co_qualname if sys.version_info >= (3, 11) else code.co_name


def code_site(function: Any) -> Site | None:
    """Where a function of the user's is written; None for the library's and for what is not Python."""
    code = getattr(function, "__code__", None)
    if code is None or not is_user_file(code.co_filename):
        return None
    return absolute(code.co_filename), code.co_firstlineno, name_of(code)


def is_user_file(path: str) -> bool:
    """By its place alone: not the standard library, not an installed package, not ours."""
    if path.startswith(("<", *OURS)):
        return "/ipykernel_" in path or path.startswith("<ipython-input-")
    return not any(part in path for part in ("/site-packages/", "/dist-packages/")) and not path.startswith(_STANDARD)


try:
    _FOLDER = os.getcwd()
except OSError:  # it was removed
    _FOLDER = ""
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OURS = (HERE, *(f"{os.path.dirname(HERE[:-1])}/{name}/" for name in ("takeover", "scanning", "tuning")))
"""All that may be injected."""
_LIBRARIES = ("lib", "lib64")
_STANDARD = (
    os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
    *(f"{prefix}/{lib}/python{sys.version_info[0]}." for prefix in (sys.prefix, sys.base_prefix) for lib in _LIBRARIES),
)
