"""The process tree under one root: its members in tree order, also orphans, and the part each plays in a training."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from . import proc
from .proc import Stat, Trouble
from .torch_files import SPAWN, WORKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.model import Role, Thread

SAME_START = 0.1  # seconds by which two records of a start may differ and still mean the same process
PYTHON = re.compile(r"^(python|pypy)[\d.]*(t|d)?$")
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "horovodrun", "torch_distributed_launcher", "mpirun", "mpiexec"}
_LAUNCHER_MODULES = {
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
    "deepspeed", "deepspeed.launcher.launch", "deepspeed.launcher.runner",
}  # fmt: skip
_HELPERS = (
    "multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker", "multiprocessing.forkserver",
    "_inductor/compile_worker", "_inductor.compile_worker", "joblib.externals.loky.backend.resource_tracker",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Member:
    pid: int
    ppid: int
    stat: Stat
    exe: str
    command: tuple[str, ...]
    is_python: bool
    forked: bool

    @property
    def key(self) -> tuple[int, int]:
        """The pid and the start time: never used twice."""
        return self.pid, self.stat.started


class Tree:
    """Finds the members anew at each call; an orphan seen before stays a member while it lives."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._seen: dict[int, Member] = {}
        self._embeds_python: dict[str, bool] = {}

    def members(self, trouble: Trouble, starts: Mapping[int, float] | None = None) -> tuple[Member, ...]:
        """`starts`: further processes known to belong here, with the second each was started."""
        members: dict[int, Member] = {}
        self._walk(self.root, 0, members)
        known = {pid: before.stat.started / proc.TICKS for pid, before in self._seen.items()}
        for pid, start in {**(starts or {}), **known}.items():
            now = proc.stat(pid) if pid not in members else None
            if now is not None and abs(now.started / proc.TICKS - start) < SAME_START:
                self._walk(pid, 0, members)
        if self.root not in members:
            trouble.note("root", f"process {self.root} is gone")
        self._seen = members
        return tuple(members.values())

    def _walk(self, pid: int, parent: int, members: dict[int, Member]) -> None:
        if pid in members or pid == os.getpid():
            return
        stat = proc.stat(pid)
        if stat is None or stat.state == "X":
            return
        members[pid] = self._member(pid, stat, members.get(parent))
        for child in children(pid):
            self._walk(child, pid, members)

    def _member(self, pid: int, stat: Stat, parent: Member | None) -> Member:
        before = self._seen.get(pid)
        if before is not None and before.stat.started != stat.started:
            before = None
        exe = proc.link(f"/proc/{pid}/exe")
        command = proc.command(pid)
        if before is not None:  # a zombie has neither, and may have become one just now; it is what it was
            exe, command = exe or before.exe, command or before.command
        if parent is None and before is not None:  # orphaned: what is known from before, unless it has exec'd since
            forked = before.forked and before.stat.layout == stat.layout
        else:
            forked = parent is not None and _is_bare_fork(exe, command, stat, parent)
        return Member(
            pid=pid,
            ppid=stat.ppid,
            stat=stat,
            exe=exe,
            command=command or (f"[{stat.name}]",),
            is_python=self._is_python(pid, exe, command),
            forked=forked,
        )

    def _is_python(self, pid: int, exe: str, command: tuple[str, ...]) -> bool:
        name = os.path.basename(exe.removesuffix(" (deleted)")) or os.path.basename(command[0] if command else "")
        if PYTHON.match(name):
            return True
        if not exe:
            return False
        if exe not in self._embeds_python:
            self._embeds_python[exe] = "libpython" in proc.maybe(f"/proc/{pid}/maps", 1 << 22)
        return self._embeds_python[exe]


def _is_bare_fork(exe: str, command: tuple[str, ...], stat: Stat, parent: Member) -> bool:
    """No exec since the fork. Addresses are laid out anew at each exec, so equal ones prove it; else by name."""
    if exe != parent.exe:
        return False
    if stat.layout != (0, 0) and parent.stat.layout != (0, 0):
        return stat.layout == parent.stat.layout
    return bool(command) and command == parent.command


def descendants(pid: int) -> list[int]:
    """All processes beneath a process, each after its parent."""
    beneath: list[int] = []
    for child in children(pid):
        beneath += [child, *descendants(child)]
    return beneath


def children(pid: int) -> list[int]:
    """Children of all its threads, oldest first."""
    pids: list[int] = []
    for tid in proc.threads(pid):
        try:
            pids += [int(word) for word in proc.text(f"/proc/{pid}/task/{tid}/children").split()]
        except FileNotFoundError:
            if tid == pid and os.path.exists(f"/proc/{pid}/stat"):
                return children_by_parent(pid)
        except (OSError, ValueError):
            continue
    return pids


def children_by_parent(pid: int) -> list[int]:
    """For kernels built without the `children` files: slower, reads every process of the machine."""
    return [other for other in proc.numbers("/proc") if (stat := proc.stat(other)) is not None and stat.ppid == pid]


def roles(root: int, members: Iterable[Member], ranks: Mapping[int, int | None]) -> dict[int, Role]:
    """By command line and place alone; `by_stack` and flight files know more."""
    by_pid = {member.pid: member for member in members}
    starts_python = _above_python(by_pid)
    known: dict[int, Role] = {}
    for pid, member in by_pid.items():
        above: Role = "launcher" if pid == root else known.get(member.ppid, "unknown")
        started_as = ranks[pid] if ranks.get(member.ppid) is None else None  # not by the environment of its parent
        known[pid] = _role(member, above, ranks[pid], pid in starts_python, started_as is not None)
    return known


def _role(member: Member, above: Role, rank: int | None, starts_python: bool, made_rank: bool) -> Role:
    """`above` is the parent's role; whoever started the root counts as a launcher. A script may launch ranks itself."""
    if not member.is_python:
        return "launcher" if starts_python and above == "launcher" else "helper"
    if is_helper(member.command):
        # A forked one is what the fork server was asked to start.
        served = member.forked and "multiprocessing.forkserver" in " ".join(member.command)
        return "unknown" if served else "helper"
    if member.forked or (above != "launcher" and not made_rank):
        return "unknown"
    if is_launcher(member.command):
        return "launcher"
    return "main" if rank is None else "rank"


def is_helper(command: Iterable[str]) -> bool:
    """A tracker, a fork server, a compile worker."""
    line = " ".join(command)
    return any(mark in line for mark in _HELPERS)


def by_stack(threads: Iterable[Thread]) -> Role | None:
    """A DataLoader worker shows itself by the loop it runs, a rank of `mp.spawn` by what called it."""
    for thread in threads:
        for frame in thread.frames:
            if frame.function.endswith("_worker_loop") and frame.file.endswith(WORKER):
                return "worker"
            if frame.function.endswith("_wrap") and frame.file.endswith(SPAWN):
                return "rank"
    return None


def rank_in(environment: Mapping[str, str]) -> int | None:
    """Only where a launcher set it: a lone RANK is nobody's contract."""
    try:
        return int(environment["RANK"]) if "WORLD_SIZE" in environment else None
    except (KeyError, ValueError):
        return None


def world_in(environment: Mapping[str, str]) -> int | None:
    """How many ranks there are, as far as a launcher said."""
    world = environment.get("WORLD_SIZE", "")
    return int(world) if world.isdigit() and "RANK" in environment else None


def is_launcher(command: tuple[str, ...]) -> bool:
    """torchrun and its like."""
    words = command[:4]
    named = {os.path.basename(word) for word in words[:2]}
    if named & _LAUNCHERS or any(word.endswith("torch/distributed/run.py") for word in words):
        return True
    return any(flag == "-m" and module in _LAUNCHER_MODULES for flag, module in pairwise(words))


def _above_python(by_pid: Mapping[int, Member]) -> set[int]:
    """Pids that have a Python process beneath them."""
    above: set[int] = set()
    for member in by_pid.values():
        if member.is_python:
            parent = by_pid.get(member.ppid)
            while parent is not None and parent.pid not in above:
                above.add(parent.pid)
                parent = by_pid.get(parent.ppid)
    return above
