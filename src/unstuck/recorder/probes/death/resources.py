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
MOST = 70_000  # descriptors that are asked for one by one
PLACES = 64  # files whose file systems are asked
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
    except OSError:  # none is left to list them with: then each is asked for
        numbers = [
            "listing",
            *(str(number) for number in range(min(limit, MOST)) if os.path.lexists(f"{folder}{number}")),
        ]
    kinds: dict[str, int] = {}
    if len(numbers) > limit // 2:
        for number in numbers[:MOST]:
            kind = _kind(folder + number)
            kinds[kind] = kinds.get(kind, 0) + 1
    most = sorted(kinds.items(), key=lambda pair: -pair[1])[:12]
    return Descriptors(open=len(numbers) - (pid is None), limit=limit, kinds=dict(most), pid=pid)


def crowded_workers(pids: Iterable[int]) -> list[Descriptors]:
    """Those of our workers that have no descriptor to spare."""
    found = []
    for pid in pids:
        try:
            counted = descriptors(pid)
        except OSError:
            continue
        if counted.kinds:
            found.append(counted)
    return found


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
    found = room(SHM)
    if found is None:
        return None
    users = [(pid, used) for pid in (os.getpid(), *pids) if (used := _mapped(pid))]
    return SharedMemory(**found.__dict__, users=users)


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
    failed = [each for each in raised if issubclass(type(each), OSError)]
    if not saving and not any(tracebacks.errno_of(each) in NO_ROOM for each in failed):
        return []
    named = [file for each in failed for file in tracebacks.files_of(each)] + ([saving] if saving else [])
    rooms = [room(path) for path in list(dict.fromkeys(named or written_paths()))[:PLACES]]
    return [each for each in rooms if each is not None][:8]


def room(path: str) -> FileSystem | None:
    """Size and room of the file system that a path is, or would be, on."""
    place = os.path.abspath(path)
    while place != "/" and not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        found = os.statvfs(place)
        device = os.stat(place).st_dev
    except OSError:
        return None
    while place != "/" and os.stat(os.path.dirname(place)).st_dev == device:
        place = os.path.dirname(place)
    no_inodes = found.f_files > 0 and found.f_favail == 0
    free = found.f_bavail * found.f_frsize
    return FileSystem(
        path=path,
        mount=place,
        kind=_file_system(place),
        size=found.f_blocks * found.f_frsize,
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


def written_paths() -> list[str]:
    """Files this process has open for writing."""
    found = []
    for number in os.listdir("/proc/self/fd")[:MOST]:
        try:
            target = os.readlink("/proc/self/fd/" + number)
            if not target.startswith("/") or target.startswith(("/dev/", "/proc/")):
                continue
            with open(f"/proc/self/fdinfo/{number}") as info:
                flags = next((int(line.split()[1], 8) for line in info if line.startswith("flags:")), 0)
        except (OSError, ValueError):
            continue
        if flags & os.O_ACCMODE:
            found.append(target.removesuffix(" (deleted)"))
    return found
