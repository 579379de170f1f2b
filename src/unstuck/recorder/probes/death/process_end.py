"""How things end inside: the exception a process died of, and those its threads died of."""

from __future__ import annotations

import atexit
import sys

from ... import facts, flight, guard, imports
from ... import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import ExceptHookArgs
    from typing import Any


_left = False
_RECORDER = guard.__package__


def install() -> None:
    atexit.register(leaving)
    guard.on("end", lambda: atexit.unregister(leaving))
    imports.when_imported("threading", _hear_threads)


def _hear_threads(threading: Any) -> None:
    original = threading.excepthook

    def excepthook(arguments: ExceptHookArgs, /) -> Any:
        try:
            thread_died(arguments)
        except Exception as fault:
            guard.off("thread ends", fault)
        return original(arguments)

    threading.excepthook = excepthook

    def remove() -> None:
        if threading.excepthook is excepthook:
            threading.excepthook = original

    guard.on("thread ends", remove)


def leaving() -> None:
    """At exit the interpreter still knows the exception it printed: no hook of the user's is touched."""
    global _left
    try:
        error = getattr(sys, "last_value", None)
        # Not of Ctrl-C: what we import here may use eval, after which Python would no longer die of the signal.
        if error is not None and not isinstance(error, KeyboardInterrupt) and not _left and not _at_a_prompt():
            from . import failures

            _left = True
            failures.last_error(error)
        scanning = sys.modules.get(f"{_RECORDER}.scan.takeover")
        if scanning is not None and scanning.wanted():
            scanning.leaving()
        learning = sys.modules.get(f"{_RECORDER}.probes.learning.learning")
        if learning is not None and "learning" not in guard.OFF:
            learning.last()
        data_read = sys.modules.get(f"{_RECORDER}.probes.data.batch_statistics")
        if data_read is not None and "data" not in guard.OFF:
            data_read.last()
        waits = sys.modules.get(f"{_RECORDER}.probes.pace.data_waits")
        if waits is not None and "waits" not in guard.OFF:
            waits.last()
        flight.enter(at.ENDED)
        flight.words[at.W_ENDED] = 1
    except Exception as fault:
        guard.off("end", fault)


def _at_a_prompt() -> bool:
    """A person types the commands: the last error was one of them, and did not end anything."""
    return hasattr(sys, "ps1") or hasattr(sys.modules.get("builtins"), "__IPYTHON__")


def thread_died(arguments: ExceptHookArgs) -> None:
    if arguments.exc_type is SystemExit:
        return
    thread = arguments.thread
    from . import errors

    data = errors.describe(arguments.exc_value)  # type: ignore[arg-type]  # None only if called by hand
    data["thread"] = thread.name if thread is not None else ""
    data["native_id"] = getattr(thread, "native_id", None)
    facts.write("thread-exception", data)
