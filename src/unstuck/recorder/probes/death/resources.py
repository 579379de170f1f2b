"""What is measured in a process at the moment something fails: descriptors, shared memory, file systems."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterable

from ... import flight
from ...records.deaths import Descriptors, FileSystem, SharedMemory
from . import tracebacks

SHM = "/dev/shm"
MOST_NUMBERS = 70_000  # of descriptors that are tried one by one
MOST_FILES = 64  # whose file systems are looked at
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
FULL = 1 << 20  # bytes left that count as none: what failed was larger, or left a part of itself behind


def descriptors(pid: int | None = None) -> Descriptors:
    """Of this process, or of one of ours, which has the same limit."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    folder = f"/proc/{'self' if pid is None else pid}/fd/"
    try:
        numbers = os.listdir(folder)
    except FileNotFoundError:
        raise
    except OSError:  # none is left to list them with: then each is tried
        numbers = [
            "listing",
            *(str(number) for number in range(min(limit, MOST_NUMBERS)) if os.path.lexists(f"{folder}{number}")),
        ]
    kinds: dict[str, int] = {}
    if len(numbers) > limit // 2:
        for number in numbers[:MOST_NUMBERS]:
            kind = _kind(folder + number)
            kinds[kind] = kinds.get(kind, 0) + 1
    most = sorted(kinds.items(), key=lambda pair: -pair[1])[:12]
    return Descriptors(open=len(numbers) - (pid is None), limit=limit, kinds=dict(most), pid=pid)


def crowded_workers(pids: Iterable[int]) -> list[Descriptors]:
    """Those of our workers that have no descriptor to spare."""
    crowded = []
    for pid in pids:
        try:
            counted = descriptors(pid)
        except OSError:
            continue
        if counted.kinds:
            crowded.append(counted)
    return crowded


def _kind(link: str) -> str:
    """A pipe, a socket, shared memory, or the folder of a file."""
    try:
        target = os.readlink(link)
    except OSError:
        return "gone"
    if not target.startswith("/"):
        return target.partition(":[")[0].removeprefix("anon_inode:").strip("[]")
    folder = os.path.dirname(target)
    return SHM if target.startswith(SHM) else "of unstuck" if folder == os.path.dirname(flight.path) else folder


def shared_memory(pids: Iterable[int] = ()) -> SharedMemory | None:
    """Room in /dev/shm, and how much of it each process has mapped, deleted files included."""
    shm = room(SHM)
    if shm is None:
        return None
    users = [(pid, used) for pid in (os.getpid(), *pids) if (used := _mapped(pid))]
    return SharedMemory(**shm.__dict__, users=users)


def _mapped(pid: int) -> int:
    """Bytes of shared memory a process has mapped, each file once."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = [line for line in file if b" /dev/shm/" in line]
    except OSError:
        return 0
    sizes: dict[bytes, int] = {}
    for line in lines:
        span, _, _, _, inode, *_ = line.split(None, 5)
        low, _, high = span.partition(b"-")
        sizes[inode] = max(sizes.get(inode, 0), int(high, 16) - int(low, 16))
    return sum(sizes.values())


def written_to(raised: list[BaseException], saving: str | None) -> list[FileSystem]:
    """Where these exceptions say that there was no room, or where something was being saved."""
    failed = [error for error in raised if issubclass(type(error), OSError)]
    if not saving and not any(tracebacks.errno_of(error) in NO_ROOM for error in failed):
        return []
    named = [file for error in failed for file in tracebacks.files_of(error)] + ([saving] if saving else [])
    rooms = [room(path) for path in list(dict.fromkeys(named or _written_paths()))[:MOST_FILES]]
    return [file_system for file_system in rooms if file_system is not None][:8]


def room(path: str) -> FileSystem | None:
    """Size and room of the file system that a path is, or would be, on."""
    mount = os.path.abspath(path)
    while mount != "/" and not os.path.exists(mount):
        mount = os.path.dirname(mount)
    try:
        status = os.statvfs(mount)
        device = os.stat(mount).st_dev
    except OSError:
        return None
    while mount != "/" and os.stat(os.path.dirname(mount)).st_dev == device:
        mount = os.path.dirname(mount)
    no_inodes = status.f_files > 0 and status.f_favail == 0
    free = status.f_bavail * status.f_frsize
    return FileSystem(
        path=path,
        mount=mount,
        kind=_file_system(mount),
        size=status.f_blocks * status.f_frsize,
        free=free,
        full=free < FULL or no_inodes,
        no_inodes=no_inodes,
    )


def _file_system(mount: str) -> str:
    kind = ""
    try:
        with open("/proc/self/mounts") as mounts:
            for line in mounts:
                words = line.split()
                if words[1] == mount:
                    kind = words[2]
    except OSError:
        pass
    return kind


def _written_paths() -> list[str]:
    """Files this process has open for writing."""
    paths = []
    for number in os.listdir("/proc/self/fd")[:MOST_NUMBERS]:
        try:
            target = os.readlink("/proc/self/fd/" + number)
            if not target.startswith("/") or target.startswith(("/dev/", "/proc/")):
                continue
            with open(f"/proc/self/fdinfo/{number}") as info:
                flags = next((int(line.split()[1], 8) for line in info if line.startswith("flags:")), 0)
        except (OSError, ValueError):
            continue
        if flags & os.O_ACCMODE:
            paths.append(target.removesuffix(" (deleted)"))
    return paths
