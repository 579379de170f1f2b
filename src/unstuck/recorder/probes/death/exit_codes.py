"""Ends without an exception at the interpreter's exit: os._exit, and those of multiprocessing's children."""

from __future__ import annotations

import os
import sys

from ... import facts, flight, guard, imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn


def install() -> None:
    original = os._exit

    def _exit(status: int) -> NoReturn:
        try:
            left(status, sys._getframe(1))
        except Exception as fault:
            guard.off("os._exit", fault)
        original(status)

    os._exit = _exit

    def remove() -> None:
        if os._exit is _exit:
            os._exit = original

    guard.on("os._exit", remove)
    imports.when_imported("multiprocessing.util", _hear_children)
    imports.when_imported("multiprocessing.popen_fork", _hear_codes)
    imports.when_imported("multiprocessing.popen_forkserver", _hear_codes)


def left(status: int, frame: FrameType | None) -> None:
    """A process ends itself: the line that does it. Not multiprocessing's own way of ending its children."""
    if frame is not None and "/multiprocessing/" in frame.f_code.co_filename:
        return
    from ... import user_code
    from . import errors, failures

    stack: list[list[object]] = []
    while frame is not None and len(stack) < errors.FRAMES:
        code = frame.f_code
        stack.append(
            [code.co_filename, frame.f_lineno, user_code.name_of(code), user_code.is_user_file(code.co_filename)]
        )
        frame = frame.f_back
    facts.write("left", {"code": status, "frames": stack, "step": flight.steps(), **failures.in_work()})


def _hear_children(util: Any) -> None:
    """multiprocessing ends a child's work with this call, in a `finally`: an exception on its way can be seen."""
    original = util._exit_function

    def _exit_function(*arguments: Any, **options: Any) -> Any:
        try:
            child_ends(sys.exc_info()[1])
        except Exception as fault:
            guard.off("children's ends", fault)
        return original(*arguments, **options)

    util._exit_function = _exit_function
    guard.on("children's ends", lambda: setattr(util, "_exit_function", original))


def _hear_codes(module: Any) -> None:
    """Exit codes of children as they are reaped: later the objects that knew them are gone."""
    original = module.Popen.__dict__["poll"]

    def poll(self: Any, *arguments: Any, **options: Any) -> Any:
        known = self.returncode
        code = original(self, *arguments, **options)
        if code and known is None:
            try:
                facts.write("child-ended", {"pid": self.pid, "code": code})
            except Exception as fault:
                guard.off("exit codes", fault)
        return code

    module.Popen.poll = poll
    guard.on(f"exit codes {module.__name__}", lambda: setattr(module.Popen, "poll", original))


def child_ends(error: BaseException | None) -> None:
    if error is None or isinstance(error, KeyboardInterrupt):
        return
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return
    from . import failures

    failures.last_error(error)
