"""What this machine allows: cores, memory, shared memory, limits, a local temporary folder."""

from __future__ import annotations

import os
import platform
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unstuck.recorder import cores
from unstuck.text import size as in_words

GIB = 1024**3

NETWORK = ("nfs", "cifs", "smb", "lustre", "beegfs", "gpfs", "ceph", "gluster", "9p", "afs", "fuse.sshfs", "fuse.s3")


@dataclass(frozen=True)
class Row:
    """One thing asked about: what it is, its value, what that means for unstuck."""

    name: str
    value: str
    meaning: str = ""
    ok: bool | None = True
    """False: something will not work here; None: it will, with less."""


def rows() -> Iterator[Row]:
    yield _kernel()
    yield _proc()
    yield _cores()
    yield _memory()
    yield _shared_memory()
    yield _open_files()
    yield _core_dumps()
    yield _temporary()


def _kernel() -> Row:
    known = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    meaning = (
        "system calls are known by name" if known else "system calls are not known by name: waits are told less exactly"
    )
    return Row(
        "kernel", f"{platform.system()} {platform.release()} {platform.machine()}", meaning, True if known else None
    )


def _proc() -> Row:
    if os.path.exists("/proc/self/stat"):
        return Row("/proc", "there", "why a process waits: yes")
    return Row("/proc", "not there", "why a process waits: no, only its own flight file is read", False)


def _cores() -> Row:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cores.quota()
    value = f"{allowed} of {os.cpu_count()}"
    if quota is None:
        return Row("cores", value, "no cgroup quota")
    return Row("cores", f"{value}, quota {quota:g}", f"the cgroup lets a run use {quota:g} cores at a time")


def _memory() -> Row:
    limit, used = memory_limit()
    if limit is None:
        return Row("memory limit", "none", "no cgroup limit: an out-of-memory kill would be the machine's own")
    spent = f", {in_words(used)} used" if used is not None else ""
    return Row("memory limit", f"{in_words(limit)}{spent}", "what goes beyond it is killed by the cgroup")


def _shared_memory() -> Row:
    try:
        status = os.statvfs("/dev/shm")
    except OSError as error:
        return Row("/dev/shm", "not there", f"DataLoader workers need it ({error.strerror})", False)
    size, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    value = f"{in_words(size)}, {in_words(free)} free"
    if size < GIB:
        return Row(
            "/dev/shm", value, "little for DataLoader workers; in a container: --shm-size=8g or --ipc=host", None
        )
    return Row("/dev/shm", value, "room for the workers' batches")


def _open_files() -> Row:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        return Row("open files", f"{soft}", f"little for many workers: ulimit -n {_limit(hard)}", None)
    return Row("open files", _limit(soft), "enough")


def _core_dumps() -> Row:
    soft, _ = resource.getrlimit(resource.RLIMIT_CORE)
    return Row("core dumps", _limit(soft), "left as it is; the line of a crash is known without one")


def _temporary() -> Row:
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Row("temporary folder", folder, f"cannot be written ({error.strerror}): nothing is recorded", False)
    kind = filesystem(folder)
    if kind.startswith(NETWORK):
        return Row(
            "temporary folder", f"{folder} ({kind})", "a network file system: set TMPDIR to a local folder", False
        )
    return Row("temporary folder", f"{folder} ({kind})" if kind else folder, "local and writable: recording works")


# --- cgroups -------------------------------------------------------------------------------------------------


def memory_limit() -> tuple[int | None, int | None]:
    """Bytes that the cgroup allows, and bytes in use there."""
    found: list[tuple[int, int | None]] = []
    for folder in _cgroup_folders("memory"):
        for limit_file, used_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = _number(folder / limit_file)
            if limit is not None and limit < 1 << 60:  # version 1 writes "no limit" as a huge number
                found.append((limit, _number(folder / used_file)))
    return min(found, key=lambda pair: pair[0], default=(None, None))


def _cgroup_folders(controller: str) -> Iterator[Path]:
    """This process's cgroup and those above it, of either version; a container sees only its own root."""
    for line in (_text(Path("/proc/self/cgroup")) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for base in (Path("/sys/fs/cgroup") / controller,) if controllers else (Path("/sys/fs/cgroup"),):
            inside = base / path.lstrip("/")
            yield from (
                folder for folder in (inside, *inside.parents) if folder.is_relative_to(base) and folder.is_dir()
            )


def filesystem(folder: str) -> str:
    """The kind of file system that a folder is on; empty where the kernel does not say."""
    best, kind = "", ""
    for line in (_text(Path("/proc/self/mountinfo")) or "").splitlines():
        before, _, after = line.partition(" - ")
        mount = before.split()[4].encode().decode("unicode_escape")
        if os.path.commonpath([mount, os.path.realpath(folder)]) == mount and len(mount) >= len(best):
            best, kind = mount, after.split()[0]
    return kind


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return None


def _number(path: Path) -> int | None:
    try:
        return int((_text(path) or "").strip())
    except ValueError:
        return None


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value}"
