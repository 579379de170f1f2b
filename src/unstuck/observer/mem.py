"""Guarded reads of another process's memory through /proc/PID/mem: nothing is stopped, nothing is written."""

from __future__ import annotations

import os
import struct


class Memory:
    """Memory of one process; every read gives None where it is not allowed or nothing is mapped."""

    def __init__(self, pid: int) -> None:
        self._path = f"/proc/{pid}/mem"

    def read(self, address: int, size: int) -> bytes | None:
        if address <= 0 or size <= 0:
            return None
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = os.pread(fd, size, address)
        except (OSError, OverflowError):
            return None
        finally:
            os.close(fd)
        return data if len(data) == size else None

    def word(self, address: int) -> int | None:
        data = self.read(address, 4)
        return None if data is None else int(struct.unpack("<I", data)[0])

    def string(self, address: int, limit: int = 1024) -> str:
        """A C string; read in small pieces, since the next page may not be mapped."""
        found = b""
        while len(found) < limit:
            piece = self.read(address + len(found), 64 - (address + len(found)) % 64)
            if piece is None:
                return ""
            end = piece.find(b"\0")
            if end >= 0:
                return (found + piece[:end]).decode(errors="replace")
            found += piece
        return ""
