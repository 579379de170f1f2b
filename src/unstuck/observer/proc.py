"""Guarded reads of /proc: each may fail because the process just died, or because we may not look."""

from __future__ import annotations

import os
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Trouble:
    """What could not be seen, once per kind, in the order it was met."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def note(self, kind: str, text: str) -> None:
        self._texts.setdefault(kind, text)

    def lines(self) -> tuple[str, ...]:
        return tuple(self._texts.values())


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields of /proc/PID/stat that we use."""

    name: str
    state: str
    ppid: int
    cpu: float
    children_cpu: float
    started: int  # clock ticks since boot: with the pid it names a process forever
    layout: tuple[int, int]  # where code and stack begin; (0, 0): not known. Equal to the parent's after a bare fork
    processor: int = 0  # on which it runs, or last ran


def text(path: str, limit: int = 1 << 20) -> str:
    """All of a small file; raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        data = more = os.read(fd, 65536)
        while more and len(data) < limit:
            more = os.read(fd, 65536)
            data += more
        return data.decode(errors="replace")
    finally:
        os.close(fd)


def maybe(path: str, limit: int = 1 << 20) -> str:
    """The same, empty where it cannot be read."""
    try:
        return text(path, limit)
    except (OSError, ValueError):
        return ""


def brief(path: str) -> str:
    """A file of /proc that comes whole in one read (those of a single process or thread); raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 8192).decode(errors="replace")
    finally:
        os.close(fd)


def parse_stat(line: str) -> Stat:
    opening, closing = line.index("("), line.rindex(")")
    fields = line[closing + 2 :].split()
    code, stack = int(fields[23]), int(fields[25])
    return Stat(
        name=line[opening + 1 : closing],
        state=fields[0],
        ppid=int(fields[1]),
        cpu=(int(fields[11]) + int(fields[12])) / TICKS,
        children_cpu=(int(fields[13]) + int(fields[14])) / TICKS,
        started=int(fields[19]),
        layout=(code, stack) if code > 1 and stack > 1 else (0, 0),
        processor=int(fields[36]),
    )


def stat(pid: int, tid: int | None = None) -> Stat | None:
    path = f"/proc/{pid}/stat" if tid is None else f"/proc/{pid}/task/{tid}/stat"
    try:
        return parse_stat(brief(path))
    except (OSError, ValueError, IndexError):
        return None


def link(path: str) -> str:
    """Where a link of /proc points; empty where it cannot be read. Never touches the file itself."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def numbers(folder: str) -> list[int]:
    """Numeric names in a folder of /proc (pids, tids, descriptors), sorted; raises OSError."""
    return sorted(int(name) for name in os.listdir(folder) if name.isdigit())


def threads(pid: int) -> list[int]:
    """Thread numbers of a process, none where it is gone."""
    try:
        return numbers(f"/proc/{pid}/task")
    except OSError:
        return []


def alive(pid: int) -> bool:
    """There is such a process, and it is no zombie."""
    now = stat(pid)
    return now is not None and now.state not in "ZX"


def ancestors(pid: int) -> list[int]:
    """From its parent up to the first process, as far as they can be seen."""
    above: list[int] = []
    known = stat(pid)
    while known is not None and known.ppid > 0 and known.ppid not in above:
        above.append(known.ppid)
        known = stat(known.ppid)
    return above


def command(pid: int) -> tuple[str, ...]:
    joined = maybe(f"/proc/{pid}/cmdline").rstrip("\0")
    return tuple(joined.split("\0")) if joined else ()


def status(pid: int | str, field: str) -> list[str]:
    """Words of one field of /proc/PID/status; none where it cannot be read or has no such field."""
    for line in maybe(f"/proc/{pid}/status").splitlines():
        name, colon, value = line.partition(":")
        if colon and name == field:
            return value.split()
    return []


def environment(pid: int) -> dict[str, str]:
    """As it was when the program was started; empty where it cannot be read."""
    pairs = (entry.partition("=") for entry in maybe(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, _, value in pairs if name}


def memory(pid: int, address: int, size: int) -> bytes | None:
    """Bytes of another process's memory: nothing is stopped. None where it is not allowed or nothing is mapped."""
    if address <= 0 or size <= 0:
        return None
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.pread(fd, size, address)
    except (OSError, OverflowError):
        return None
    finally:
        os.close(fd)
    return data if len(data) == size else None


def memory_text(pid: int, address: int, limit: int = 1024) -> str:
    """A C string there; read in small pieces, since the next page may not be mapped."""
    read = b""
    while len(read) < limit:
        piece = memory(pid, address + len(read), 64 - (address + len(read)) % 64)
        if piece is None:
            return ""
        end = piece.find(b"\0")
        if end >= 0:
            return (read + piece[:end]).decode(errors="replace")
        read += piece
    return ""
