"""What works on this machine, tried out: limits, a place for flight files, a look into a child process."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unstuck.observer import cgroups
from unstuck.observer.stacks import PySpy
from unstuck.recorder import cores
from unstuck.supervise.flight_folder import make_folder, remove_folder
from unstuck.text import size

MIN_SHM_BYTES = 1 << 30  # a container's usual 64 MB holds hardly a batch of images for each worker
MIN_OPEN_FILES = 4096  # every tensor that a worker hands over takes one
PY_SPY_SECONDS = 10.0
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_SCOPES = {
    "0": "all your own processes can be looked into",
    "1": "only processes that unstuck starts can be looked into: use `unstuck run`",
    "2": "only root can look into a process",
    "3": "nobody can look into a process until the next reboot",
}


@dataclass(frozen=True)
class Row:
    """One check: its name, the value found, and what that means for unstuck."""

    name: str
    value: str
    meaning: str = ""
    ok: bool | None = True  # False: something does not work here; None: it does, with limits


def rows() -> Iterator[Row]:
    yield _kernel()
    yield _proc()
    yield _cores()
    yield _memory()
    yield _shared_memory()
    yield _open_files()
    yield _core_dumps()
    yield _flight_files()
    yield from child_rows()


def _kernel() -> Row:
    known = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    meaning = "system calls are known by name" if known else "system calls are not known by name: fewer details"
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Row("kernel", kernel, meaning, True if known else None)


def _proc() -> Row:
    if os.path.exists("/proc/self/stat"):
        return Row("/proc", "mounted", "shows what a process waits for")
    return Row("/proc", "missing", "what a process waits for cannot be seen", False)


def _cores() -> Row:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cores.quota()
    value = f"{usable} of {os.cpu_count()}"
    if quota is None:
        return Row("cores", value, "no cgroup quota")
    return Row("cores", f"{value}, quota {quota:g}", f"the cgroup lets a run use {quota:g} cores at a time")


def _memory() -> Row:
    member = cgroups.membership(os.getpid())
    groups = [cgroups.Group(folder, member[0]) for folder in cgroups.folders(*member)] if member else []
    limits = [(group.limit, group.usage) for group in groups if group.limit is not None]
    if not limits:
        return Row("memory limit", "none", "no cgroup limit: only the machine itself can run out of memory")
    limit, used = min(limits)
    return Row("memory limit", f"{size(limit)}, {size(used)} used", "a run that needs more is OOM-killed")


def _shared_memory() -> Row:
    try:
        status = os.statvfs("/dev/shm")
    except OSError as error:
        return Row("/dev/shm", "missing", f"DataLoader workers need it ({error.strerror})", False)
    total, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    value = f"{size(total)}, {size(free)} free"
    if total < MIN_SHM_BYTES:
        meaning = "small for DataLoader workers; in a container: --shm-size=8g or --ipc=host"
        return Row("/dev/shm", value, meaning, None)
    return Row("/dev/shm", value, "enough for the workers' batches")


def _open_files() -> Row:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < MIN_OPEN_FILES:
        return Row("open files", f"{soft}", f"low for many workers: ulimit -n {_limit(hard)}", None)
    return Row("open files", _limit(soft), "enough")


def _core_dumps() -> Row:
    soft, _ = resource.getrlimit(resource.RLIMIT_CORE)
    return Row("core dumps", _limit(soft), "not changed: unstuck finds the line of a crash without one")


def _flight_files() -> Row:
    folder, why = make_folder()
    if folder is None:
        return Row("flight files", "no folder", f"nothing can be recorded: {why}; set TMPDIR to a local folder", False)
    remove_folder(folder)
    return Row("flight files", os.path.dirname(folder), "local and writable: recording works")


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value}"


# --- a look into a child -------------------------------------------------------------------------------------


def child_rows() -> Iterator[Row]:
    yield _yama()
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; print(flush=True); time.sleep(60)"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        yield _system_calls(child.pid)
        yield _stacks(child.pid)
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _yama() -> Row:
    try:
        scope = YAMA.read_text().strip()
    except OSError:
        return Row("ptrace", "no Yama", _SCOPES["0"])
    return Row("ptrace", f"Yama {scope}", _SCOPES.get(scope, ""), scope in ("0", "1"))


def _system_calls(pid: int) -> Row:
    try:
        Path(f"/proc/{pid}/syscall").read_text()
    except OSError as error:
        reason = error.strerror or str(error)
        return Row("system calls", reason, "what a hung process waits for: fewer details", None)
    return Row("system calls", "readable", "shows what a hung process waits for")


def _stacks(pid: int) -> Row:
    stacks = PySpy(limit=PY_SPY_SECONDS).take([pid])[pid]
    if stacks.threads:
        return Row("py-spy", "works on a child", "shows the stacks of hung processes")
    reason = stacks.missing.removeprefix("py-spy: ")
    hint = "" if "not found" in reason else "; in a container: --cap-add=SYS_PTRACE"
    return Row("py-spy", reason, f"no stacks, except those a process writes itself on a signal{hint}", False)
