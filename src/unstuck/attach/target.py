"""Which tree a pid belongs to: from a worker, a rank or a wrapper's pid to the root of its training."""

from __future__ import annotations

import os
from dataclasses import dataclass

from unstuck.attach import refused
from unstuck.attach.kin import is_ours, root_of, torch_loaded
from unstuck.observer import proc
from unstuck.observer.proc import Trouble
from unstuck.observer.tree import Member, Tree, is_launcher, rank_in

_KERNEL_THREAD = 0x00200000


@dataclass(frozen=True)
class Target:
    pid: int
    """As it was asked for."""
    root: int
    """The top of the tree that is looked at."""
    note: str = ""
    """Why another process is looked at than the one named; empty if it is that one."""
    flight_dir: str = ""
    """Where the run records itself, if it was started by `unstuck run`."""


def resolve(asked: int) -> Target:
    """Raises UsageError, which says why there is nothing to look at."""
    if not os.path.isdir("/proc/self"):
        raise refused.no_proc()
    pid = _process_of(asked)
    stat = proc.stat(pid)
    if stat is None:
        raise refused.absent(asked)
    if pid == os.getpid():
        raise refused.ourselves()
    if stat.state in "ZX":
        raise refused.zombie(pid, stat)
    if _is_kernel_thread(pid):
        raise refused.kernel_thread(pid, stat)
    tree = Tree(root_of(pid)).members(Trouble())
    python = [member for member in tree if member.is_python]
    if not python:
        raise refused.not_python(pid, stat, tree)
    root, how = _chosen(pid, tree)
    main = next((m for m in Tree(root).members(Trouble()) if m.is_python and not is_launcher(m.command)), python[0])
    note = how or ("" if root == pid else f"pid {pid} belongs to the run of pid {root}, which is looked at as a whole")
    if pid != asked:
        note = f"{asked} is a thread of process {pid}" + (f"; {note}" if note else "")
    return Target(asked, root, note, proc.environment(main.pid).get("UNSTUCK_FLIGHT_DIR", ""))


def _process_of(number: int) -> int:
    """The process that a thread belongs to, for the kernel answers for the number of a thread as well."""
    group = proc.status(number, "Tgid")
    return int(group[0]) if group else number


def _is_kernel_thread(pid: int) -> bool:
    fields = proc.maybe(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return len(fields) > 6 and bool(int(fields[6]) & _KERNEL_THREAD)


def _chosen(pid: int, tree: tuple[Member, ...]) -> tuple[int, str]:
    """The root to look at, and why it is another than the top: beneath a supervisor of ours, or one of several."""
    ours = {member.pid for member in tree if is_ours(member.command)}
    watched = next((member for member in tree if member.ppid in ours and _is_recorded(member.pid)), None)
    if watched is not None:
        return watched.pid, f"pid {watched.ppid} is unstuck itself; what it runs, pid {watched.pid}, is looked at"
    tops = [member for member in _tops(tree) if member.pid not in ours]
    if ours and not tops:
        raise refused.ourselves()
    ranks = {rank_in(proc.environment(member.pid)) for member in tops} - {None}
    if len(tops) < 2 or len(ranks) > 1:
        return tree[0].pid, ""  # ranks that a shell script started are one run
    loaded = [member for member in tops if torch_loaded(member.pid)]
    if len(loaded) != 1:
        raise refused.several(pid, loaded or tops)
    return loaded[0].pid, f"of what runs beneath pid {pid}, only pid {loaded[0].pid} has torch loaded"


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
