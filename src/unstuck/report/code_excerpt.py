"""Lines of the user's source around a line, read from disk when shown."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from unstuck.model import Case, Frame, Where
from unstuck.rules.notebook_cells import file_of_cell

MAX_BYTES = 4_000_000  # of a source that is read
READ_SECONDS = 2.0  # a dead network file system, perhaps the very cause, must not hang us too


@dataclass(frozen=True)
class Line:
    number: int
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Excerpt:
    lines: tuple[Line, ...] = ()
    note: str = ""  # why there is less to see than there should be


def excerpt(where: Where, case: Case, around: int) -> Excerpt:
    """The line and `around` lines on each side; only the line as it was recorded if the file is gone or other."""
    if not where.file or not where.line:
        return Excerpt()
    line, where = where.line, replace(where, file=file_of_cell(case, where.file))
    lines = _read(os.path.join(case.cwd, where.file or ""))
    recorded = _recorded(where, case)
    if lines is None or not 1 <= line <= len(lines):
        only = (Line(line, recorded, True),) if recorded else ()
        return Excerpt(only, "" if lines is None else "the file has changed since then")
    if recorded and lines[line - 1].strip() != recorded:
        return Excerpt((Line(line, recorded, True),), "the file has changed since then")
    first, last = _neighbours(lines, line, around)
    return Excerpt(tuple(_dedented(lines, first, last, line)))


def _neighbours(lines: list[str], line: int, around: int) -> tuple[int, int]:
    """First and last line to show: no blank edges, and nothing of the functions above and below."""
    first = last = line
    while first > max(1, line - around) and not _opens(lines[first - 1]):
        first -= 1
    while last < min(len(lines), line + around) and not (
        _opens(lines[last]) and _indent(lines[last]) <= _indent(lines[line - 1])
    ):
        last += 1
    while first < line and not lines[first - 1].strip():
        first += 1
    while last > line and not lines[last - 1].strip():
        last -= 1
    return first, last


def _opens(text: str) -> bool:
    return text.lstrip().startswith(("def ", "class ", "async def ", "@"))


def _indent(text: str) -> int:
    text = text.expandtabs(4)
    return len(text) - len(text.lstrip())


def _dedented(lines: list[str], first: int, last: int, marked: int) -> Iterator[Line]:
    shown = [line.expandtabs(4).rstrip() for line in lines[first - 1 : last]]
    margin = min((_indent(line) for line in shown if line), default=0)
    for number, line in enumerate(shown, first):
        yield Line(number, line[margin:], number == marked)


def _recorded(where: Where, case: Case) -> str:
    """The line's text as it was while the process ran."""
    path = os.path.join(case.cwd, where.file or "")
    for frame in _frames(case):
        if frame.code and frame.line == where.line and os.path.join(case.cwd, frame.file) == path:
            return frame.code.strip()
    return ""


def _frames(case: Case) -> Iterator[Frame]:
    for look in reversed(case.looks):
        for process in look.processes:
            for thread in process.threads:
                yield from thread.frames


def _read(path: str) -> list[str] | None:
    """The file's lines, if they can be read in time."""
    read_lines: list[list[str]] = []

    def read() -> None:
        try:
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES:
                with open(path, encoding="utf-8", errors="replace") as file:
                    read_lines.append(file.read().splitlines())
        except (OSError, ValueError):
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(READ_SECONDS)
    return read_lines[0] if read_lines else None
