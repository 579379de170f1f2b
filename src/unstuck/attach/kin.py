"""Who belongs to whom: a worker, a tracker or a rank to what made it; never a program to what merely started it."""

from __future__ import annotations

import os

from unstuck.observer import proc
from unstuck.observer.proc import Stat
from unstuck.observer.tree import PYTHON, is_helper, is_launcher

_CHILD_OF_PYTHON = ("multiprocessing.spawn", "multiprocessing.forkserver", "loky.backend.popen_loky_posix")
_HIGHEST = 32
_TORCH = ("/libtorch", "/torch/_C.")


def root_of(pid: int, known: dict[int, int] | None = None) -> int:
    """Up from a worker, a tracker or a rank to what started it; never further. `known`: roots found before."""
    passed = [pid]
    stat = proc.stat(pid)
    for _ in range(_HIGHEST):
        if stat is None or (known and pid in known):
            break
        above = proc.stat(stat.ppid) if stat.ppid > 0 else None
        if above is None or not belongs(pid, stat, above):
            break
        pid, stat = stat.ppid, above
        passed.append(pid)
    root = known.get(pid, pid) if known else pid
    if known is not None:
        known.update(dict.fromkeys(passed, root))
    return root


def belongs(pid: int, stat: Stat, above: Stat) -> bool:
    """The parent made it as a part of itself: forked it without exec, by multiprocessing, or launched it as a rank."""
    command, parent = proc.command(pid), proc.command(stat.ppid)
    line = " ".join(command)
    if any(mark in line for mark in _CHILD_OF_PYTHON) or is_helper(command):
        return is_python(stat.ppid, parent)
    if is_launcher(parent):
        return is_python(pid, command)
    if not is_python(pid, command):
        return False
    if stat.layout != (0, 0) and above.layout != (0, 0):
        same = proc.link(f"/proc/{pid}/exe") == proc.link(f"/proc/{stat.ppid}/exe")
        return same and stat.layout == above.layout
    return bool(command) and command == parent  # where we may not know more, as with another user's


def is_python(pid: int, command: tuple[str, ...] | None = None) -> bool:
    """By the name of its program alone: cheap enough for every process of the machine."""
    exe = proc.link(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    if not exe:
        words = proc.command(pid) if command is None else command
        exe = words[0] if words else ""
    return bool(PYTHON.match(os.path.basename(exe)))


def is_ours(command: tuple[str, ...]) -> bool:
    """A command of unstuck: the supervisor of a run, or another look."""
    names = [os.path.basename(word) for word in command[:2]]
    return "unstuck" in names or command[1:3] == ("-m", "unstuck")


def torch_loaded(pid: int) -> bool:
    maps = proc.maybe(f"/proc/{pid}/maps", 1 << 23)
    return any(mark in maps for mark in _TORCH)


def ancestors(pid: int) -> list[int]:
    """From its parent up to the first process, as far as they can be seen."""
    found: list[int] = []
    stat = proc.stat(pid)
    while stat is not None and stat.ppid > 0 and stat.ppid not in found:
        found.append(stat.ppid)
        stat = proc.stat(stat.ppid)
    return found
