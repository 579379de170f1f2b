"""Files that several processes have open through one open file description: asked of the kernel, by kcmp.

Same description, same offset: what one reads moves the place at which the others read. Needs the right to trace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re

from unstuck.model import SharedFile
from unstuck.observe import proc
from unstuck.observe.fds import access_in

KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_FILE = 0
MOST = 32
_OFFSET = re.compile(r"^pos:\s+(\d+)", re.MULTILINE)
_FLAGS = re.compile(r"^flags:\s+(\d+)", re.MULTILINE)


def same_file(pid: int, other: int, fd: int, machine: str | None = None) -> bool | None:
    """Descriptor `fd` of both is one open file; None where the kernel would not say."""
    number = KCMP.get(machine or platform.machine())
    if number is None:
        return None
    answer = _libc().syscall(*(ctypes.c_long(word) for word in (number, pid, other, KCMP_FILE, fd, fd)))
    if answer < 0:
        if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return None
    return bool(answer == 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def shared_files(parent: int, workers: list[int], at: float) -> list[SharedFile]:
    """Plain files that the parent and all of its forked workers, or some of them, have open as one. Raises OSError
    where we may not look."""
    found = []
    for fd, path in _readable(workers[0]):
        pids = [pid for pid in (parent, *workers[1:]) if proc.link(f"/proc/{pid}/fd/{fd}") == path]
        sharing = [pid for pid in pids if same_file(workers[0], pid, fd)]
        if sharing:
            offset = _OFFSET.search(proc.maybe(f"/proc/{workers[0]}/fdinfo/{fd}"))
            seen = (int(offset[1]),) if offset else ()
            found.append(SharedFile(path, fd, tuple(sorted((workers[0], *sharing))), seen, at))
    return found[:MOST]


def _readable(pid: int) -> list[tuple[int, str]]:
    """Descriptors of plain files that can be read; not the standard ones, not what is written at its end."""
    found = []
    for fd in proc.numbers(f"/proc/{pid}/fd"):
        path = proc.link(f"/proc/{pid}/fd/{fd}")
        if fd < 3 or not path.startswith("/") or path.startswith(("/dev/", "/proc/", "/memfd:")):
            continue
        text = proc.maybe(f"/proc/{pid}/fdinfo/{fd}")
        flags = _FLAGS.search(text)
        if "read" in access_in(text) and flags is not None and not int(flags[1], 8) & os.O_APPEND:
            found.append((fd, path))
    return found
