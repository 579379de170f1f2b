"""An exception in plain data: what it is, the frames it came through, and what it came from."""

from __future__ import annotations

import os

from ... import user_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

FRAMES = 60
BEFORE = 6  # causes of causes


def describe(error: BaseException) -> dict[str, object]:
    """Type, message and frames, innermost first; then the exceptions it came from."""
    chain: list[dict[str, object]] = []
    seen = {id(error)}
    how, before = _before(error)
    while before is not None and id(before) not in seen and len(chain) < BEFORE:
        seen.add(id(before))
        chain.append({"how": how, **_one(before)})
        how, before = _before(before)
    return {**_one(error), "chain": chain}


def _before(error: BaseException) -> tuple[str, BaseException | None]:
    """What it was raised from; else what was being handled, which `from None` only hides from the print."""
    if error.__cause__ is not None:
        return "cause", error.__cause__
    return ("hidden" if error.__suppress_context__ else "context"), error.__context__


def _one(error: BaseException) -> dict[str, object]:
    found: dict[str, object] = {
        "type": type(error).__name__,
        "module": type(error).__module__,
        "message": _text(error),
        "frames": frames(error.__traceback__),
    }
    if isinstance(error, OSError):
        found["errno"] = error.errno
        found["files"] = [str(name) for name in (error.filename, error.filename2) if name is not None]
    if isinstance(error, SystemExit):
        found["code"] = error.code if isinstance(error.code, (int, type(None))) else 1
    notes = error.__dict__.get("__notes__")
    if isinstance(notes, list):
        found["notes"] = [str(note)[:500] for note in notes[:4]]
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except Exception:  # an exception of the user's that cannot be printed
        return ""


def frames(trace: TracebackType | None) -> list[list[object]]:
    """File, line, function, and whether it is the user's own code; innermost first, ours left out."""
    found = [_frame(step) for step in steps(trace) if not step.tb_frame.f_code.co_filename.startswith(user_code.HERE)]
    return found[: -FRAMES - 1 : -1]


def _frame(step: TracebackType) -> list[object]:
    code = step.tb_frame.f_code
    file = code.co_filename
    user = user_code.is_user_file(file)
    return [os.path.abspath(file) if user and file[:1] != "<" else file, step.tb_lineno, user_code.name_of(code), user]


def steps(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def chained(error: BaseException | None) -> list[BaseException]:
    """The exception and what it came from."""
    found: list[BaseException] = []
    while error is not None and len(found) <= BEFORE and not any(error is known for known in found):
        found.append(error)
        error = _before(error)[1]
    return found
