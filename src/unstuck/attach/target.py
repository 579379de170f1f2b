"""Which tree a pid belongs to: from a worker, a rank or a wrapper's pid to the root of its training."""

from __future__ import annotations

import os
from dataclasses import dataclass

from unstuck.attach import access
from unstuck.attach.access import is_python
from unstuck.observer import proc
from unstuck.observer.proc import Stat, Trouble
from unstuck.observer.tree import Member, Tree, is_helper, is_launcher, rank_in

_KERNEL_THREAD = 0x00200000
_CHILD_OF_PYTHON = ("multiprocessing.spawn", "multiprocessing.forkserver", "loky.backend.popen_loky_posix")
_HIGHEST = 32
_TORCH = ("/libtorch", "/torch/_C.")


@dataclass(frozen=True)
class Target:
    pid: int
    """As the user gave it."""
    root: int
    """The top of the tree that is looked at."""
    note: str = ""
    """Why another process is looked at than the one named; empty if it is that one."""
    flight_dir: str = ""
    """Where the run records itself, if it was started by `unstuck run`."""


def resolve(number: int) -> Target:
    """Raises UsageError, which says why there is nothing to look at."""
    if not os.path.isdir("/proc/self"):
        raise access.no_proc()
    pid = _process_of(number)
    stat = proc.stat(pid)
    if stat is None:
        raise access.absent(number)
    if pid == os.getpid():
        raise access.ourselves()
    if stat.state in "ZX":
        raise access.zombie(pid, stat)
    if _is_kernel_thread(pid):
        raise access.kernel_thread(pid, stat)
    tree = Tree(root_of(pid)).members(Trouble())
    python = [member for member in tree if member.is_python]
    if not python:
        raise access.not_python(pid, stat, tree)
    root, how = _chosen(pid, tree)
    main = next((m for m in Tree(root).members(Trouble()) if m.is_python and not is_launcher(m.command)), python[0])
    note = how or ("" if root == pid else f"pid {pid} belongs to the run of pid {root}, which is looked at as a whole")
    if pid != number:
        note = f"{number} is a thread of process {pid}" + (f"; {note}" if note else "")
    return Target(number, root, note, proc.environment(main.pid).get("UNSTUCK_FLIGHT_DIR", ""))


def _process_of(number: int) -> int:
    """The process that a thread belongs to, for the kernel answers for the number of a thread as well."""
    group = proc.status(number, "Tgid")
    return int(group[0]) if group else number


def _is_kernel_thread(pid: int) -> bool:
    fields = proc.maybe(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return len(fields) > 6 and bool(int(fields[6]) & _KERNEL_THREAD)


def _chosen(pid: int, tree: tuple[Member, ...]) -> tuple[int, str]:
    """The root to look at, and why it is another than the top: below a supervisor of ours, or one of several."""
    ours = {member.pid for member in tree if is_ours(member.command)}
    watched = next((member for member in tree if member.ppid in ours and _is_recorded(member.pid)), None)
    if watched is not None:
        return watched.pid, f"pid {watched.ppid} is unstuck itself; what it runs, pid {watched.pid}, is looked at"
    tops = [member for member in _tops(tree) if member.pid not in ours]
    if ours and not tops:
        raise access.ourselves()
    ranks = {rank_in(proc.environment(member.pid)) for member in tops} - {None}
    if len(tops) < 2 or len(ranks) > 1:
        return tree[0].pid, ""  # ranks that a shell script started are one run
    loaded = [member for member in tops if torch_loaded(member.pid)]
    if len(loaded) != 1:
        raise access.several(pid, loaded or tops)
    return loaded[0].pid, f"of what runs below pid {pid}, only pid {loaded[0].pid} has torch loaded"


def _is_recorded(pid: int) -> bool:
    return "UNSTUCK_FLIGHT_DIR" in proc.environment(pid)


def _tops(tree: tuple[Member, ...]) -> list[Member]:
    """Python processes that no other Python process and no launcher started: programs of their own."""
    parts: set[int] = set()
    tops = []
    for member in tree:
        if member.ppid in parts or is_launcher(member.command):
            parts.add(member.pid)
        elif member.is_python:
            parts.add(member.pid)
            tops.append(member)
    return tops


# --- who belongs to whom: a worker, a tracker or a rank to what made it; never a program to what merely started it --


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
    if not is_python(pid, command):
        return False
    if is_launcher(parent) or _launched_as_rank(pid, stat.ppid, parent):
        return True
    if stat.layout != (0, 0) and above.layout != (0, 0):
        same = proc.link(f"/proc/{pid}/exe") == proc.link(f"/proc/{stat.ppid}/exe")
        return same and stat.layout == above.layout
    return bool(command) and command == parent  # where we may not know more, as with another user's


def _launched_as_rank(pid: int, above: int, parent: tuple[str, ...]) -> bool:
    """By a script that starts its ranks itself: it gave this one a number, and has none of its own."""
    numbered = rank_in(proc.environment(pid)) is not None
    return numbered and is_python(above, parent) and rank_in(proc.environment(above)) is None


def is_ours(command: tuple[str, ...]) -> bool:
    """A command of unstuck: the supervisor of a run, or another look."""
    names = [os.path.basename(word) for word in command[:2]]
    return "unstuck" in names or command[1:3] == ("-m", "unstuck")


def torch_loaded(pid: int) -> bool:
    maps = proc.maybe(f"/proc/{pid}/maps", 1 << 23)
    return any(mark in maps for mark in _TORCH)
