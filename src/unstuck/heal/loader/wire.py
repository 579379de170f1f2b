"""The channel between the training and one worker: a pair of Unix sockets that keep messages whole.

A message is one packet: it arrives complete or not at all, at whatever instant its sender is killed. Descriptors of
shared memory travel with it. What is too long for a packet goes into a file in memory, whose descriptor travels too.
"""

from __future__ import annotations

import array
import errno
import mmap
import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

HEADER = struct.Struct("<I?")  # descriptors that come with it; whether the last one has the body
MOST_BYTES = 1 << 15  # of a packet: several fit into the smallest buffer that Linux gives a socket
AT_ONCE = 253  # descriptors that Linux passes
BUFFER = 1 << 22  # bytes asked for on either side; the system may grant less
LATER = (errno.EAGAIN, errno.ENOBUFS, errno.ETOOMANYREFS)  # the last: too many descriptors on their way
_ANCILLARY = socket.CMSG_SPACE(AT_ONCE * array.array("i").itemsize)


def pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    return ends


class Packet:
    """A message to be sent. `keep` owns its descriptors and lives as long as it."""

    def __init__(self, body: bytes, descriptors: Sequence[int] = (), keep: Any = None) -> None:
        self._descriptors, self.keep = array.array("i", descriptors), keep
        self._file = -1
        if len(body) > MOST_BYTES:
            self._file = os.memfd_create("unstuck-message")
            self._descriptors.append(self._file)
            rest = memoryview(body)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            body = b""
        self._bytes = HEADER.pack(len(self._descriptors), self._file >= 0) + body

    def send(self, end: socket.socket) -> bool:
        """False where there is no room now. Raises OSError where nobody reads any more."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, self._descriptors)] if self._descriptors else []
        try:
            end.sendmsg([self._bytes], rights, socket.MSG_NOSIGNAL)
        except OSError as error:
            if error.errno not in LATER:
                raise
            return False
        return True

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


class Message:
    """One that came, with its descriptors. Some may be missing where the process has too many open files."""

    def __init__(self, packet: bytes, descriptors: list[int]) -> None:
        expected, self._apart = HEADER.unpack_from(packet)
        self._packet, self.descriptors = packet, descriptors
        self.complete = len(descriptors) == expected

    def body(self) -> Any:
        """To be read before it is closed."""
        if not self._apart:
            return memoryview(self._packet)[HEADER.size :]
        return mmap.mmap(self.descriptors[-1], 0, prot=mmap.PROT_READ)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def receive(end: socket.socket) -> Message | None:
    """The next message; None if there is none yet. Raises EOFError where nothing more will come."""
    try:
        try:
            packet, control, _, _ = end.recvmsg(MOST_BYTES + HEADER.size, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # said once, of a sender that ended with orders unread; what it sent comes next
            packet, control, _, _ = end.recvmsg(MOST_BYTES + HEADER.size, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
    except BlockingIOError:
        return None
    except OSError as error:
        raise EOFError from error
    if not packet:
        raise EOFError
    descriptors = array.array("i")
    for _, _, data in control:
        descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return Message(packet, descriptors.tolist())
