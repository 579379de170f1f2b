"""Which tree a pid belongs to: from a worker, a rank or a wrapper's pid to the root of its training."""

from __future__ import annotations

import os
from dataclasses import dataclass

from unstuck.errors import UsageError
from unstuck.observe import proc
from unstuck.observe.proc import Stat, Trouble
from unstuck.observe.roles import is_helper, is_launcher
from unstuck.observe.tree import Member, Tree

_CHILD_OF_PYTHON = ("multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_tracker")
_HIGHEST = 32


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


def resolve(pid: int) -> Target:
    """Raises UsageError, which says why there is nothing to look at."""
    if not os.path.isdir("/proc/self"):
        raise UsageError(
            "cannot look at another process here: there is no /proc",
            cause="this system is not Linux, or /proc is not mounted",
            next_command="mount -t proc proc /proc   (Linux); else start it with `unstuck run`",
        )
    stat = proc.stat(pid)
    if stat is None:
        raise UsageError(f"there is no process {pid}", cause=_why_absent(), next_command="unstuck attach")
    if pid == os.getpid():
        raise UsageError("that is unstuck itself", next_command="unstuck attach")
    if stat.state in "ZX":
        raise UsageError(
            f"process {pid} has ended already: it is a zombie",
            cause=f"its parent, pid {stat.ppid} ({_command(stat.ppid)}), has not collected its exit status",
            next_command=f"unstuck attach {stat.ppid}" if stat.ppid > 1 else "unstuck attach",
        )
    root = _root_of(pid, stat)
    tree = Tree(root).members(Trouble())
    python = [member for member in tree if member.is_python]
    if not python:
        raise _not_python(pid, stat, tree)
    note = "" if root == pid else f"pid {pid} belongs to the run of pid {root}, which is looked at as a whole"
    main = next((member for member in python if not is_launcher(member.command)), python[0])
    return Target(pid, root, note, proc.environment(main.pid).get("UNSTUCK_FLIGHT_DIR", ""))


def _root_of(pid: int, stat: Stat) -> int:
    """Up from a worker, a tracker or a rank to what started it; never further than that."""
    for _ in range(_HIGHEST):
        above = proc.stat(stat.ppid) if stat.ppid > 1 else None
        if above is None or not _belongs(pid, stat, above):
            break
        pid, stat = stat.ppid, above
    return pid


def _belongs(pid: int, stat: Stat, above: Stat) -> bool:
    """The parent made it as a part of itself: forked it without exec, by multiprocessing, or launched it as a rank."""
    command, parent = proc.command(pid), proc.command(stat.ppid)
    exe = proc.link(f"/proc/{pid}/exe")
    forked = stat.layout != (0, 0) and stat.layout == above.layout and exe == proc.link(f"/proc/{stat.ppid}/exe")
    if forked and exe and "python" in os.path.basename(exe):
        return True
    if any(mark in " ".join(command) for mark in _CHILD_OF_PYTHON) or is_helper(command):
        return True
    return is_launcher(parent) and "RANK" in proc.environment(pid)


def _why_absent() -> str:
    hidden = _hides_processes()
    if hidden:
        return f"/proc is mounted with {hidden}: processes of other users are not shown; ask as their owner or as root"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return "it has ended, or it runs outside this container (pids are counted anew in each)"
    return "it has ended, or the number is of another machine or container (there, look from inside)"


def _hides_processes() -> str:
    """`hidepid=…` where /proc shows a user only their own processes."""
    for line in proc.maybe("/proc/self/mounts").splitlines():
        words = line.split()
        if len(words) > 3 and words[1] == "/proc":
            for option in words[3].split(","):
                if option.startswith("hidepid=") and option not in ("hidepid=0", "hidepid=off"):
                    return option
    return ""


def _not_python(pid: int, stat: Stat, tree: tuple[Member, ...]) -> UsageError:
    owner = _owner(pid)
    if owner is not None and owner != os.geteuid() and os.geteuid() != 0:
        return UsageError(
            f"process {pid} ({stat.name}) belongs to {_user(owner)}, and it cannot be seen what it is",
            cause="only its owner or root may look into it",
            next_command=f"sudo unstuck attach {pid}",
        )
    beneath = f", and none of the {len(tree) - 1} processes beneath it is" if len(tree) > 1 else ""
    return UsageError(
        f"process {pid} is not Python{beneath}: {_command(pid)}",
        cause="unstuck explains Python trainings" if stat.name else "",
        next_command="unstuck attach",
    )


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _command(pid: int) -> str:
    words = proc.command(pid)
    text = " ".join([os.path.basename(words[0]), *words[1:]]) if words else "unknown"
    return text if len(text) <= 60 else text[:57] + "…"
