"""Kin, refusals and barriers that need no process of their own: from command lines and texts of the kernel."""

from __future__ import annotations

import os

import pytest

from unstuck.attach import access, target
from unstuck.attach.access import barrier, curtly, may_trace, way_in
from unstuck.errors import UsageError
from unstuck.model import Look, Process
from unstuck.observer.proc import Stat
from unstuck.observer.tree import Member, is_launcher


def member(pid: int, ppid: int, *command: str, python: bool = True) -> Member:
    stat = Stat("x", "S", ppid, 0.0, 0.0, 1, (0, 0))
    return Member(pid, ppid, stat, "", command or ("python", "train.py"), python, False)


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (("/venv/bin/python", "/venv/bin/unstuck", "run", "train.py"), True),
        (("python", "-m", "unstuck", "attach", "5"), True),
        (("unstuck", "run", "x.py"), True),
        (("python", "train.py", "unstuck"), False),
        (("python", "-m", "pytest", "unstuck"), False),
        ((), False),
    ],
)
def test_commands_of_ours(command: tuple[str, ...], ours: bool) -> None:
    assert target.is_ours(command) is ours


def test_both_halves_of_deepspeed_launch() -> None:
    assert is_launcher(("python", "/venv/bin/deepspeed", "train.py"))
    assert is_launcher(("python", "-u", "-m", "deepspeed.launcher.launch", "--world_info=x"))


def test_programs_of_their_own() -> None:
    tree = (
        member(1, 0, "bash", python=False),
        member(2, 1),
        member(3, 2),
        member(4, 2, "bash", python=False),
        member(5, 4),
        member(6, 1, "python", "/bin/torchrun"),
        member(7, 6),
        member(8, 1),
    )
    assert [one.pid for one in target._tops(tree)] == [2, 8], "not what a program or a launcher started"


def test_itself() -> None:
    with pytest.raises(UsageError, match="unstuck itself"):
        target.resolve(os.getpid())


def test_climb_remembers() -> None:
    known: dict[int, int] = {}
    root = target.root_of(os.getpid(), known)
    assert known[os.getpid()] == root
    known[os.getpid()] = -1
    assert target.root_of(os.getpid(), known) == -1


def test_capability_to_trace() -> None:
    assert may_trace("Name:\tx\nCapEff:\t0000000000080000\n")
    assert not may_trace("CapEff:\t000001fffff7ffff\n")
    assert not may_trace("")


# --- barriers ------------------------------------------------------------------------------------------------


def stand_as(monkeypatch: pytest.MonkeyPatch, *, uid: int, whose: int, yama: int = 0, container: bool = False) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(access, "owner", lambda _pid: whose)
    monkeypatch.setattr(access, "yama", lambda: yama)
    monkeypatch.setattr(access, "may_trace", lambda: False)
    monkeypatch.setattr(access, "in_container", lambda: container)
    monkeypatch.setattr(access, "_unstuck", lambda **_: ["unstuck"])
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_barrier_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_as(monkeypatch, uid=1000, whose=0, yama=1)
    assert barrier(7).why.startswith("process 7 belongs to root")
    assert barrier(7).command == "sudo unstuck attach 7"


def test_barrier_of_yama(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_as(monkeypatch, uid=1000, whose=1000, yama=1)
    assert "sysctl kernel.yama.ptrace_scope=0" in barrier(7).why
    assert barrier(7).command == "sudo unstuck attach 7"
    stand_as(monkeypatch, uid=1000, whose=1000, yama=3)
    assert barrier(7).command.startswith("unstuck run")


def test_barrier_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_as(monkeypatch, uid=0, whose=0, container=True)
    assert "--cap-add SYS_PTRACE" in barrier(7).why
    assert barrier(7).command.startswith("docker exec --privileged -u root ")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "SYS_PTRACE" in barrier(7).command


def test_barrier_of_root_and_of_one_that_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_as(monkeypatch, uid=0, whose=0)
    assert "CAP_SYS_PTRACE" in barrier(7).why
    stand_as(monkeypatch, uid=1000, whose=1000, container=True)
    assert "does not let its owner" in barrier(7).why


def test_barrier_that_is_no_matter_of_rights() -> None:
    assert barrier(7, "py-spy: not found (pip install py-spy)").command.endswith("-m pip install py-spy")
    hung = barrier(7, "py-spy: no answer within 3 s")
    assert hung.why == "py-spy: no answer within 3 s"
    assert hung.command.endswith("dump --nonblocking --pid 7")


def test_way_in_is_that_of_the_first_python_process() -> None:
    shell = Process(5, 1, 0.0, "launcher", ("sh",))
    script = Process(6, 5, 0.0, "main", ("python",), is_python=True, stacks_missing="py-spy: no answer within 3 s")
    assert way_in(Look(0.0, (shell, script))).command.endswith("--pid 6")
    assert way_in(Look(0.0)).why == "it has ended"


def test_only_what_could_not_be_seen() -> None:
    told = (
        "py-spy may not look into process 7 (permission denied): run as its owner or `sudo`",
        "no /proc/PID/syscall",
    )
    assert curtly(told) == ("py-spy may not look into process 7", "no /proc/PID/syscall")
