"""What new processes are handed as a pickle (spawn, forkserver): how large it is, and how long making it took.

Measured where multiprocessing makes it; nothing is pickled a second time.
"""

from __future__ import annotations

import io
from time import monotonic_ns

from ... import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

largest = took = 0
"""Bytes, and nanoseconds for all, since `begin`."""


def begin() -> None:
    global largest, took
    largest = took = 0


def install(module: Any) -> None:
    """`module` is multiprocessing.reduction."""
    original = module.dump

    def dump(obj: Any, file: Any, protocol: Any = None) -> Any:
        began = monotonic_ns()
        before = file.tell() if type(file) is io.BytesIO else 0
        answer = original(obj, file, protocol)
        try:
            note(file, before, began)
        except Exception as fault:
            guard.off("pickles", fault)
        return answer

    module.dump = dump
    guard.on("pickles", lambda: setattr(module, "dump", original))


def note(file: Any, before: int, began: int) -> None:
    global largest, took
    if type(file) is io.BytesIO:
        largest = max(largest, file.tell() - before)
        took += monotonic_ns() - began
