"""An exception in plain data: what it is, the frames it came through, and what it came from.

Attributes are read by BaseException's own slots, so that nothing is run that a class of the user's puts in their place.
"""

from __future__ import annotations

import os
from collections import deque
from itertools import islice

from ... import attempts, objects, user_code
from ...records.deaths import Raised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType
    from typing import Any, Literal

    from ...records.deaths import TracedLine

FRAMES = 60
DEEP = 100_000  # frames of a traceback that are gone through
BEFORE = 6  # causes of causes
LONGEST = 2000
NOTE = 500


def _slot(kind: type[BaseException], name: str) -> Any:
    return kind.__dict__[name].__get__


trace_of = _slot(BaseException, "__traceback__")
_cause, _context = _slot(BaseException, "__cause__"), _slot(BaseException, "__context__")
_suppressed, _own = _slot(BaseException, "__suppress_context__"), _slot(BaseException, "__dict__")
_errno, _file, _second = _slot(OSError, "errno"), _slot(OSError, "filename"), _slot(OSError, "filename2")
exit_code_of = _slot(SystemExit, "code")


def describe(error: BaseException) -> Raised:
    """With the exceptions it came from."""
    chain = [_one(each, how) for each, how in islice(_chained(error), 1, None)]
    return _one(error, "", chain)


def chained(error: BaseException) -> list[BaseException]:
    """The exception and what it came from."""
    return [each for each, _ in _chained(error)]


def _chained(error: BaseException) -> Iterator[tuple[BaseException, Literal["", "cause", "context", "hidden"]]]:
    """What it was raised from; else what was being handled, which `from None` only hides from the print."""
    seen: set[int] = set()
    here: BaseException | None = error
    how: Literal["", "cause", "context", "hidden"] = ""
    while here is not None and id(here) not in seen and len(seen) <= BEFORE:
        seen.add(id(here))
        yield here, how
        cause = _cause(here)
        how = "cause" if cause is not None else "hidden" if _suppressed(here) else "context"
        here = cause if cause is not None else _context(here)


def _one(
    error: BaseException, how: Literal["", "cause", "context", "hidden"], chain: list[Raised] | None = None
) -> Raised:
    system = issubclass(type(error), OSError)
    notes = _own(error).get("__notes__")
    return Raised(
        type=objects.class_name(type(error)),
        message=text(error),
        frames=frames(trace_of(error)),
        errno=errno_of(error) if system else None,
        files=files_of(error) if system else [],
        notes=[note[:NOTE] for note in notes[:4] if type(note) is str] if type(notes) is list else [],
        how=how,
        chain=chain or [],
    )


def text(error: BaseException) -> str:
    """Its message. This runs the `__str__` of an exception of the user's, as the interpreter does itself when it
    prints the last one, and as torch does with every exception that a worker hands over."""
    try:
        return str(error)[:LONGEST]
    except Exception:  # one that cannot be printed
        return ""


def errno_of(error: BaseException) -> int | None:
    """Of an OSError."""
    number = _errno(error)
    return number if type(number) is int else None


def files_of(error: BaseException) -> list[str]:
    """That an OSError names."""
    names = [attempts.plain_path(name) for name in (_file(error), _second(error))]
    return [os.fsdecode(name) for name in names if name is not None]


def frames(trace: TracebackType | None) -> list[TracedLine]:
    """Innermost first, ours left out."""
    kept = deque((line(step.tb_frame, step.tb_lineno) for step in steps(trace) if not _ours(step.tb_frame)), FRAMES)
    return list(kept)[::-1]


def stack(frame: FrameType | None) -> list[TracedLine]:
    """The lines that are being run, innermost first."""
    found: list[TracedLine] = []
    while frame is not None and len(found) < FRAMES:
        found.append(line(frame, frame.f_lineno))
        frame = frame.f_back
    return found


def _ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((user_code.HERE, "<unstuck"))


def line(frame: FrameType, number: int) -> TracedLine:
    code = frame.f_code
    file = code.co_filename
    user = user_code.is_user_file(file)
    return os.path.abspath(file) if user and file[:1] != "<" else file, number, user_code.name_of(code), user


def steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Outermost first."""
    for _ in range(DEEP):
        if trace is None:
            return
        yield trace
        trace = trace.tb_next
