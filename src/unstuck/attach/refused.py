"""Why there is nothing to look at under a number: each answer with its likely cause and the next command."""

from __future__ import annotations

import os

from unstuck.attach.access import as_root, owner, user
from unstuck.errors import UsageError
from unstuck.observer import proc
from unstuck.observer.proc import Stat
from unstuck.observer.tree import Member
from unstuck.rules.words import shorten

LIST = "unstuck attach   (lists what can be looked at)"


def no_proc() -> UsageError:
    return UsageError(
        "cannot look at another process here: there is no /proc",
        cause="this system is not Linux, or /proc is not mounted",
        next_command="mount -t proc proc /proc   (Linux); else start it with `unstuck run`",
    )


def absent(pid: int) -> UsageError:
    inside = _inside(pid)
    if inside:
        return UsageError(
            f"there is no process {pid} here",
            cause=f"{pid} is its number inside a container (another pid namespace); here it is pid {inside[0]}",
            next_command=f"unstuck attach {inside[0]}",
        )
    hidden = _hides_processes()
    if hidden:
        cause = f"/proc is mounted with {hidden}: processes of other users are not shown"
        return UsageError(f"there is no process {pid} that you may see", cause=cause, next_command=as_root(pid))
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        cause = "it has ended, or it runs outside this container (pids are counted anew in each)"
    else:
        cause = "it has ended, or the number is of another machine or container (there, look from inside)"
    return UsageError(f"there is no process {pid}", cause=cause, next_command=LIST)


def ourselves() -> UsageError:
    return UsageError("that is unstuck itself", cause="it runs nothing that could be looked at", next_command=LIST)


def zombie(pid: int, stat: Stat) -> UsageError:
    return UsageError(
        f"process {pid} has ended already: it is a zombie",
        cause=f"its parent, pid {stat.ppid} ({command(stat.ppid)}), has not collected its exit status",
        next_command=f"unstuck attach {stat.ppid}" if stat.ppid > 1 else LIST,
    )


def kernel_thread(pid: int, stat: Stat) -> UsageError:
    return UsageError(
        f"process {pid} ({stat.name}) is a thread of the kernel, not a program",
        cause=_elsewhere(pid),
        next_command=LIST,
    )


def several(pid: int, tops: list[Member]) -> UsageError:
    named = "; ".join(f"pid {member.pid}: {command(member.pid)}" for member in tops[:6])
    more = f"; and {len(tops) - 6} more" if len(tops) > 6 else ""
    return UsageError(
        f"{len(tops)} Python programs run beneath process {pid} ({command(pid)}): choose one",
        cause=named + more,
        next_command=f"unstuck attach {tops[0].pid}",
    )


def not_python(pid: int, stat: Stat, tree: tuple[Member, ...]) -> UsageError:
    whose = owner(pid)
    if whose is not None and whose != os.geteuid() and os.geteuid() != 0 and not proc.link(f"/proc/{pid}/exe"):
        return UsageError(
            f"process {pid} ({stat.name}) belongs to {user(whose)}, and it does not seem to be Python",
            cause="only its owner or root may look into it",
            next_command=as_root(pid),
        )
    beneath = f", and none of the {len(tree) - 1} processes beneath it is" if len(tree) > 2 else ""
    beneath = ", and the process beneath it is not either" if len(tree) == 2 else beneath
    return UsageError(
        f"process {pid} is not Python{beneath}: {command(pid)}",
        cause=_elsewhere(pid) or "unstuck explains Python trainings",
        next_command=LIST,
    )


def command(pid: int) -> str:
    words = proc.command(pid)
    text = " ".join([os.path.basename(words[0]), *words[1:]]) if words else "unknown"
    return shorten(text)


def _elsewhere(pid: int) -> str:
    """The number may have been read inside a container, where it means another process."""
    inside = _inside(pid)
    return f"a Python process inside a container has this number there; here it is pid {inside[0]}" if inside else ""


def _inside(wanted: int) -> list[int]:
    """Pids, as they are here, of Python processes that are number `wanted` inside a pid namespace of their own."""
    from unstuck.attach.kin import is_python

    found = []
    for pid in proc.numbers("/proc"):
        numbers = proc.status(pid, "NSpid")
        if len(numbers) > 1 and int(numbers[-1]) == wanted and is_python(pid):
            found.append(pid)
    return found


def _hides_processes() -> str:
    """`hidepid=…` where /proc shows a user only their own processes."""
    for line in proc.maybe("/proc/self/mounts").splitlines():
        words = line.split()
        if len(words) > 3 and words[1] == "/proc":
            for option in words[3].split(","):
                if option.startswith("hidepid=") and option not in ("hidepid=0", "hidepid=off"):
                    return option if os.geteuid() != 0 else ""
    return ""
