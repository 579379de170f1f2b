"""Seam: large messages between processes. Of the standard library only; a small one is measured by its length alone."""

from __future__ import annotations

import sys
from time import monotonic_ns, thread_time_ns

from .. import guard
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Part:
    """One part of the way, pickling or writing: the processor time of all, and the least time that a byte took. More
    may be the wait for a receiver that is busy."""

    __slots__ = ("least", "spent")

    def __init__(self) -> None:
        self.spent, self.least = 0, float("inf")

    def add(self, spent: int, took: int, size: int) -> None:
        self.spent += spent
        self.least = min(self.least, took / size)

    def seconds(self, size: int) -> float:
        """For so many bytes."""
        return max(self.spent, self.least * size if self.spent else 0.0) / 1e9


class Messages:
    """Large messages that this process has sent."""

    __slots__ = ("began", "bytes", "count", "pickling", "writing")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.count = self.bytes = self.began = 0
        self.pickling, self.writing = Part(), Part()

    def sent(self, thing: Any, size: int) -> None:
        self.began = self.began or monotonic_ns()
        self.count += 1
        self.bytes += size
        if "torch" in sys.modules and not self.count & (self.count - 1):  # ever more rarely
            processes.emit("message_pickled", thing, self)

    @property
    def seconds(self) -> float:
        """That pickling and writing them took at least."""
        return self.pickling.seconds(self.bytes) + self.writing.seconds(self.bytes)


messages = Messages()
forget = messages.forget


def install(module: Any) -> None:
    """`module` is multiprocessing.connection, by which queues, pools and pipes send: a first large message was sent."""
    pickler, connection = module._ForkingPickler, module.Connection
    as_written = pickler.__dict__["dumps"]
    original, send = as_written.__func__, connection._send_bytes
    known = messages

    def dumps(kind: Any, obj: Any, protocol: Any = None) -> Any:
        spent, began = thread_time_ns(), monotonic_ns()
        answer = original(kind, obj, protocol)
        if processes.sends[0]:
            guard.attempt("first sent", processes.look_at_sent, obj, answer)
        size = len(answer)
        if size >= processes.LARGE:
            try:
                known.pickling.add(thread_time_ns() - spent, monotonic_ns() - began, size)
                known.sent(obj, size)
            except Exception as fault:
                guard.off("messages", fault)
        return answer

    def _send_bytes(self: Any, buf: Any) -> Any:
        size = len(buf)
        if size < processes.LARGE:
            return send(self, buf)
        spent, began = thread_time_ns(), monotonic_ns()
        answer = send(self, buf)
        known.writing.add(thread_time_ns() - spent, monotonic_ns() - began, size)
        return answer

    pickler.dumps = classmethod(dumps)
    connection._send_bytes = _send_bytes

    def remove() -> None:
        pickler.dumps, connection._send_bytes = as_written, send

    guard.on("messages", remove)
