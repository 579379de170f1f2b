"""The channel between the training and one worker: a pair of Unix sockets with framed messages.

Descriptors of shared memory travel with the message itself, so that a message that has arrived is complete: its sender
may be gone by then. What a killed worker had half written is never handed out.
"""

from __future__ import annotations

import array
import errno
import os
import select
import socket
import struct
import threading
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

HEADER = struct.Struct("<QI")  # bytes of the message, descriptors that come with it
MOST_DESCRIPTORS = 253  # that Linux passes at once
CHUNK = 1 << 16
BUFFER = 1 << 22  # bytes asked for on either side; the system may grant less
LATER = (errno.EAGAIN, errno.EINTR, errno.ENOBUFS, errno.ETOOMANYREFS)  # the last: too many descriptors on their way
PAUSE = 0.0005  # seconds between two tries to send: the reader may have made little room
_ANCILLARY = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)


class Frame:
    """A whole message: its bytes and descriptors, which the receiver closes. Some descriptors may be missing where
    the process has too many open files."""

    __slots__ = ("body", "descriptors", "expected")

    def __init__(self, body: bytearray, descriptors: list[int], expected: int) -> None:
        self.body, self.descriptors, self.expected = body, descriptors, expected

    @property
    def complete(self) -> bool:
        return len(self.descriptors) == self.expected

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []


def pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for end in ends:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    return ends


class Receiver:
    """Takes frames off a socket as they come. `ended`: nothing more will."""

    def __init__(self, end: socket.socket) -> None:
        self.ended = False
        self._end = end
        self._loose = bytearray()
        """What came of a frame whose header is not complete,"""
        self._body: bytearray | None = None
        self._got = self._expected = 0
        """and of one whose header is."""
        self._descriptors: list[int] = []

    def frames(self) -> Iterator[Frame]:
        """Those that are complete after one reading."""
        body = self._body
        try:
            if body is None:
                chunk, control, _, _ = self._end.recvmsg(CHUNK, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
                size = len(chunk)
            else:
                rest = memoryview(body)[self._got :]
                size, control, _, _ = self._end.recvmsg_into([rest], _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
                rest.release()
        except BlockingIOError:
            return
        except OSError:  # reset: the worker is gone
            self.ended = True
            return
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
                self._descriptors += numbers
        if not size:
            self.ended = True
        elif body is not None:
            self._got += size
        else:
            self._loose += chunk
        while (frame := self._whole()) is not None:
            yield frame

    def _whole(self) -> Frame | None:
        if self._body is None:
            loose = self._loose
            if len(loose) < HEADER.size:
                return None
            length, self._expected = HEADER.unpack_from(loose)
            body = bytearray(length)
            here = loose[HEADER.size : HEADER.size + length]
            body[: len(here)] = here
            del loose[: HEADER.size + length]
            self._body, self._got = body, len(here)
        if self._got < len(self._body):
            return None
        body, self._body = self._body, None
        taken, self._descriptors = self._descriptors[: self._expected], self._descriptors[self._expected :]
        return Frame(body, taken, self._expected)

    def close(self) -> None:
        """Descriptors of a frame that never became complete."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []


class Sender:
    """Sends frames without ever blocking its caller: what the socket does not take at once a thread sends later, or
    the caller itself, where `patient` is false: then it calls `flush` when the socket can be written."""

    def __init__(self, end: socket.socket, patient: bool) -> None:
        self._end, self._patient = end, patient
        self._waiting: deque[tuple[memoryview, list[int], Any]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def send(self, body: bytes, descriptors: Sequence[int] = (), keep: Any = None) -> None:
        """`keep` lives until the frame is sent: it owns the descriptors."""
        header = HEADER.pack(len(body), len(descriptors))
        with self._lock:
            if len(body) < CHUNK:
                self._waiting.append((memoryview(header + body), list(descriptors), keep))
            else:
                self._waiting.append((memoryview(header), list(descriptors), None))
                self._waiting.append((memoryview(body), [], keep))
            if self._thread is not None:
                return  # behind others: they go out in order
            self._push()
            if self._waiting and self._patient:
                self._thread = threading.Thread(target=self._send_rest, daemon=True, name="unstuck-sender")
                self._thread.start()

    def flush(self) -> None:
        with self._lock:
            self._push()

    def _push(self) -> None:
        """As much as the socket takes now."""
        waiting = self._waiting
        while waiting:
            frame, descriptors, keep = waiting[0]
            some, rest = descriptors[:MOST_DESCRIPTORS], descriptors[MOST_DESCRIPTORS:]
            try:
                if some:  # each part of them needs a byte to go with; the last part goes with all the rest
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", some))]
                    sent = self._end.sendmsg([frame[:1] if rest else frame], rights, socket.MSG_NOSIGNAL)
                else:
                    sent = self._end.send(frame, socket.MSG_NOSIGNAL)
            except OSError as error:
                if error.errno not in LATER:  # nobody reads any more
                    waiting.clear()
                return
            if sent == len(frame):
                waiting.popleft()
            else:
                waiting[0] = frame[sent:], rest, keep

    def _send_rest(self) -> None:
        poll = select.poll()
        poll.register(self._end, select.POLLOUT)
        while True:
            with self._lock:
                self._push()
                if not self._waiting:
                    self._thread = None
                    return
            poll.poll(1000)
            time.sleep(PAUSE)
