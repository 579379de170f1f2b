"""The part a process plays in a training: from its command line, its environment, its place in the tree, its stack."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import pairwise

from unstuck.model import Role, Thread

from .tree import Member

_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "horovodrun", "torch_distributed_launcher", "mpirun", "mpiexec"}
_LAUNCHER_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed",
    "deepspeed.launcher.launch",
    "deepspeed.launcher.runner",
)
_HELPERS = (
    "multiprocessing.resource_tracker",
    "multiprocessing.semaphore_tracker",
    "multiprocessing.forkserver",
    "_inductor/compile_worker",
    "_inductor.compile_worker",
    "joblib.externals.loky.backend.resource_tracker",
)


def roles(root: int, members: Iterable[Member], ranks: Mapping[int, int | None]) -> dict[int, Role]:
    """By command line and place alone; `by_stack` and flight files know more."""
    listed = tuple(members)
    by_pid = {member.pid: member for member in listed}
    starts_python = _above_python(listed, by_pid)
    found: dict[int, Role] = {}
    for member in listed:
        parent = by_pid.get(member.ppid)
        above = "launcher" if member.pid == root else found.get(parent.pid, "unknown") if parent else "unknown"
        found[member.pid] = _role(member, above, ranks[member.pid], member.pid in starts_python)
    return found


def _role(member: Member, above: Role, rank: int | None, starts_python: bool) -> Role:
    """`above` is the parent's role; whoever started the root counts as a launcher."""
    if not member.is_python:
        return "launcher" if starts_python and above == "launcher" else "helper"
    if is_helper(member.command):
        # A forked one is what the fork server was asked to start.
        served = member.forked and "multiprocessing.forkserver" in " ".join(member.command)
        return "unknown" if served else "helper"
    if above != "launcher" or member.forked:
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
            if frame.function.endswith("_worker_loop") and frame.file.endswith("data/_utils/worker.py"):
                return "worker"
            if frame.function.endswith("_wrap") and frame.file.endswith("torch/multiprocessing/spawn.py"):
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


def _above_python(members: tuple[Member, ...], by_pid: Mapping[int, Member]) -> set[int]:
    """Pids that have a Python process beneath them."""
    above: set[int] = set()
    for member in members:
        if member.is_python:
            parent = by_pid.get(member.ppid)
            while parent is not None and parent.pid not in above:
                above.add(parent.pid)
                parent = by_pid.get(parent.ppid)
    return above
