"""What keeps us from looking into a process, or leaves nothing to look at; each with the one command that helps."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass

from unstuck.errors import UsageError
from unstuck.model import Look
from unstuck.observer import proc
from unstuck.observer.proc import Stat
from unstuck.observer.stacks import find_py_spy
from unstuck.observer.tree import PYTHON, Member
from unstuck.rules.words import shorten

LIST = "unstuck attach"

_SYS_PTRACE = 19
_CONTAINER_ID = re.compile(r"[0-9a-f]{12}")
_OF_ROOT = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True)
class Barrier:
    why: str
    command: str


def way_in(look: Look) -> Barrier:
    """For a look that saw no stacks: what kept the first of them from us."""
    python = [process for process in look.processes if process.is_python]
    first = next((process for process in python if process.stacks_missing), None)
    return barrier(first.pid, first.stacks_missing) if first else Barrier("it has ended", "unstuck attach")


def barrier(pid: int, missing: str = "Permission denied") -> Barrier:
    """For a process whose stacks were not seen. `missing`: why, as the rungs of the ladder say it."""
    if "Permission denied" in missing:
        return _forbidden(pid)
    if "py-spy: not found" in missing:
        return Barrier("py-spy, which reads the stacks, is not installed", f"{sys.executable} -m pip install py-spy")
    return Barrier(missing or "nothing was said", f"{find_py_spy() or 'py-spy'} dump --nonblocking --pid {pid}")


def _forbidden(pid: int) -> Barrier:
    whose = owner(pid)
    if whose is not None and whose != os.geteuid() and os.geteuid() != 0:
        return Barrier(f"process {pid} belongs to {user(whose)}: only its owner or root may look into it", as_root(pid))
    scope = yama()
    if scope == 3:
        return Barrier(
            "this kernel lets nobody look into another process until the next boot (kernel.yama.ptrace_scope is 3); "
            "the next time, `unstuck run` looks from inside",
            "unstuck run SCRIPT",
        )
    if os.geteuid() == 0 and may_trace():
        return Barrier(f"the system does not let even root look into process {pid}", "dmesg | tail")
    if os.geteuid() != 0 and not scope:
        why = f"process {pid} does not let its owner look into it (it hides, or has more rights)"
        return Barrier(why, as_root(pid))
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return Barrier(
            "this pod may not look into processes: it was started without SYS_PTRACE",
            'capabilities: {add: ["SYS_PTRACE"]}   (in the securityContext of the container; for the next start)',
        )
    if in_container():
        name = os.uname().nodename
        box = name if _CONTAINER_ID.fullmatch(name) else "CONTAINER"
        return Barrier(
            "this container may not look into processes: it was started without `--cap-add SYS_PTRACE`",
            f"docker exec --privileged -u root {box} {' '.join(_unstuck(root=False))} attach {pid}",
        )
    if os.geteuid() == 0:
        return Barrier("root was denied the right to look into processes here (CAP_SYS_PTRACE)", as_root(pid))
    return Barrier(
        f"kernel.yama.ptrace_scope is {scope}: a process may only look into its own children, and root into all; "
        "`sudo sysctl kernel.yama.ptrace_scope=0` lifts that until the next boot",
        as_root(pid),
    )


def as_root(pid: int | None = None) -> str:
    """A line that can be pasted: root's path seldom has the environment we are installed in."""
    return " ".join(["sudo", *_unstuck(root=True), "attach", *([str(pid)] if pid else [])])


def _unstuck(root: bool) -> list[str]:
    if shutil.which("unstuck", path=os.pathsep.join(_OF_ROOT)):
        return ["unstuck"]
    if root and shutil.which("unstuck"):
        return ['"$(which unstuck)"']
    return [sys.executable, "-m", "unstuck"]


def yama() -> int:
    """Who may look into whom: 0 owners, 1 parents, 2 root, 3 nobody; 0 where this kernel has no such setting."""
    text = proc.maybe("/proc/sys/kernel/yama/ptrace_scope").strip()
    return int(text) if text.isdigit() else 0


def may_trace(status: str | None = None) -> bool:
    """We have the capability that opens every process."""
    for line in (proc.maybe("/proc/self/status") if status is None else status).splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _SYS_PTRACE & 1)
    return False


def in_container() -> bool:
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv") or "container" in proc.environment(1)


def owner(pid: int) -> int | None:
    """The user whose process it is. (The files of one that hides belong to root, so its status is read.)"""
    ids = proc.status(pid, "Uid")
    return int(ids[1]) if len(ids) > 1 else None


def user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def is_python(pid: int, command: tuple[str, ...] | None = None) -> bool:
    """By the name of its program alone: cheap enough for every process of the machine."""
    exe = proc.link(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    if not exe:
        words = proc.command(pid) if command is None else command
        exe = words[0] if words else ""
    return bool(PYTHON.match(os.path.basename(exe)))


def curtly(trouble: tuple[str, ...]) -> tuple[str, ...]:
    """What could not be seen, without the several ways out of it: where the one that fits is shown anyway."""
    return tuple(line.partition(" (permission denied): ")[0] for line in trouble)


# --- nothing to look at --------------------------------------------------------------------------------------


def no_proc() -> UsageError:
    return UsageError(
        "cannot look at another process here: there is no /proc",
        cause="/proc is not mounted",
        next_command="mount -t proc proc /proc",
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
    if in_container():
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
        f"{len(tops)} Python programs run below process {pid} ({command(pid)}): choose one",
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
    below = {1: "", 2: ", and neither is the process below it"}.get(
        len(tree), f", and neither is any of the {len(tree) - 1} processes below it"
    )
    return UsageError(
        f"process {pid} is not Python{below}: {command(pid)}",
        cause=_elsewhere(pid) or "unstuck explains Python trainings",
        next_command=LIST,
    )


def command(pid: int) -> str:
    words = proc.command(pid)
    return shorten(" ".join([os.path.basename(words[0]), *words[1:]])) if words else "unknown"


def _elsewhere(pid: int) -> str:
    """The number may have been read inside a container, where it means another process."""
    inside = _inside(pid)
    return f"a Python process inside a container has this number there; here it is pid {inside[0]}" if inside else ""


def _inside(wanted: int) -> list[int]:
    """Pids, as they are here, of Python processes that are number `wanted` inside a pid namespace of their own."""
    numbers = {pid: proc.status(pid, "NSpid") for pid in proc.numbers("/proc")}
    return [pid for pid, own in numbers.items() if len(own) > 1 and int(own[-1]) == wanted and is_python(pid)]


def _hides_processes() -> str:
    """`hidepid=…` where /proc shows a user only their own processes."""
    mounts = [line.split() for line in proc.maybe("/proc/self/mounts").splitlines()]
    options = [option for words in mounts if words[1:2] == ["/proc"] for option in words[3].split(",")]
    hiding = [o for o in options if o.startswith("hidepid=") and o not in ("hidepid=0", "hidepid=off")]
    return hiding[0] if hiding and os.geteuid() != 0 else ""
