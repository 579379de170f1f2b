"""Lines worth naming, found in the source of the training: where the loss is computed, where the optimizer is made."""

from __future__ import annotations

import linecache
import re

from . import sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

BACK = 80
"""Lines to look back for the assignment."""
_CALLED_ON = (
    re.compile(r"scale\(\s*(\w+)"),
    re.compile(r"\b(\w+)\s*(?:/\s*[\w.]+\s*\)\s*)?\.backward\("),
    re.compile(r"backward\(\s*(\w+)"),
)


def site(frame: FrameType | None) -> list[str | int] | None:
    """Where the name that backward is called on was last assigned, in the same function; else the call itself."""
    frame = user_frame(frame)
    if frame is None:
        return None
    code, line = frame.f_code, frame.f_lineno
    found = _assigned(code.co_filename, line, code.co_firstlineno) or line
    return [sites.absolute(code.co_filename), found, sites.name_of(code)]


def made(frame: FrameType | None, kind: str) -> list[str | int] | None:
    """The only line in the file of the training that calls this class."""
    frame = user_frame(frame)
    if frame is None:
        return None
    call = re.compile(rf"\b{re.escape(kind)}\(")
    found = [number for number, text in enumerate(linecache.getlines(frame.f_code.co_filename), 1) if call.search(text)]
    return [sites.absolute(frame.f_code.co_filename), found[0], ""] if len(found) == 1 else None


def user_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not sites.is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _assigned(file: str, line: int, first: int) -> int | None:
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return None
    name = next((match[1] for pattern in _CALLED_ON if (match := pattern.search(lines[line - 1]))), None)
    if name is None:
        return None
    assigned = re.compile(rf"^\s*(?:[\w, ]+,\s*)?{re.escape(name)}(?:\s*,[\w, ]+)?\s*=[^=]")
    divided = re.compile(rf"^\s*{re.escape(name)}\s*=\s*{re.escape(name)}\s*[/*]")
    for number in range(line - 1, max(first, line - BACK) - 1, -1):
        text = lines[number - 1]
        if assigned.match(text) and not divided.match(text):
            return number
    return None
