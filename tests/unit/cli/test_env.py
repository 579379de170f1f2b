"""`env`: what this machine allows, tried out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from unstuck.cli import machine, main, sight


def rows_of(text: str) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(text)["rows"]}


def test_every_row_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--json", "--python", sys.executable]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["python"]["value"] == sys.executable
    assert rows["python version"]["value"] == ".".join(map(str, sys.version_info[:3]))
    wanted = ["torch", "kernel", "/proc", "cores", "memory limit", "/dev/shm", "open files", "core dumps"]
    assert set(wanted) <= set(rows)
    assert {"temporary folder", "ptrace", "system calls", "py-spy"} <= set(rows)


def test_as_text_it_ends_with_what_works(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "rows", lambda: [machine.Row("a", "1"), machine.Row("b", "2", "half", None)])
    monkeypatch.setattr(sight, "rows", lambda: [machine.Row("py-spy", "no", "no stacks", False)])
    assert main(["env", "--python", sys.executable]) == 0
    text = capsys.readouterr().out
    assert "✖ py-spy" in text
    assert "Will not work here as it should: py-spy." in text
    assert "Works with less: b." in text


def test_an_interpreter_that_fails_is_said_not_raised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho broken libraries >&2\nexit 1\n")
    broken.chmod(0o755)
    assert main(["env", "--json", "--python", str(broken)]) == 0
    row = rows_of(capsys.readouterr().out)["python version"]
    assert row["ok"] is False
    assert "broken libraries" in str(row["meaning"])


def test_an_old_interpreter_and_one_without_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\necho \'{"version": "3.8.2", "executable": "x", "torch": null}\'\n')
    old.chmod(0o755)
    assert main(["env", "--json", "--python", str(old)]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["python version"]["ok"] is False
    assert "pip install torch" in str(rows["torch"]["meaning"])


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Stand-ins for files of the kernel."""
    made: dict[str, str] = {}
    monkeypatch.setattr(machine, "_text", lambda path: made.get(str(path)))
    monkeypatch.setattr(Path, "is_dir", lambda path: any(name.startswith(f"{path}/") for name in made))
    return made


def test_the_limit_of_the_memory_version_2(files: dict[str, str]) -> None:
    files["/proc/self/cgroup"] = "0::/a/b\n"
    files["/sys/fs/cgroup/a/b/memory.max"] = "2147483648\n"
    files["/sys/fs/cgroup/a/b/memory.current"] = "1000\n"
    assert machine.memory_limit() == (2147483648, 1000)


def test_a_container_sees_its_own_root_version_1(files: dict[str, str]) -> None:
    files["/proc/self/cgroup"] = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n"
    files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712\n"
    assert machine.memory_limit() == (None, None)


def test_no_cgroup_no_limit(files: dict[str, str]) -> None:
    files["/proc/self/cgroup"] = "0::/\n"
    files["/sys/fs/cgroup/cgroup.procs"] = ""
    assert machine.memory_limit() == (None, None)


def test_a_network_file_system_is_recognised(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    files["/proc/self/mountinfo"] = (
        "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:40 / /scratch\\040x rw,relatime shared:1 - nfs4 server:/x rw\n"
    )
    assert machine.filesystem("/scratch x/tmp") == "nfs4"
    assert machine.filesystem("/scratch xy") == "ext4"
    monkeypatch.setattr(machine, "filesystem", lambda _: "nfs4")
    row = next(row for row in machine.rows() if row.name == "temporary folder")
    assert row.ok is False


def test_what_the_look_into_a_child_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spy = tmp_path / "py-spy"
    monkeypatch.setattr(sight, "find_py_spy", lambda: str(spy))
    spy.write_text("#!/bin/sh\nexit 0\n")
    spy.chmod(0o755)
    assert list(sight.rows())[-1].ok is True
    spy.write_text("#!/bin/sh\necho Permission Denied >&2\nexit 1\n")
    row = list(sight.rows())[-1]
    assert (row.ok, row.value) == (False, "Permission Denied")
    assert "SYS_PTRACE" in row.meaning
    monkeypatch.setattr(sight, "LIMIT", 0.1)
    spy.write_text("#!/bin/sh\nexec sleep 5\n")
    assert list(sight.rows())[-1].value == "no answer in 0.1 s"
    monkeypatch.setattr(sight, "find_py_spy", lambda: None)
    assert "pip install py-spy" in list(sight.rows())[-1].meaning


@pytest.mark.parametrize(("scope", "ok"), [("0", True), ("1", True), ("2", False), ("3", False)])
def test_yama(scope: str, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(sight, "YAMA", tmp_path / "scope")
    row = next(iter(sight.rows()))
    assert (row.value, row.ok) == (f"Yama {scope}", ok)


def test_the_child_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def keep(*args: object, **more: object) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **more))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", keep)
    rows = sight.rows()
    next(rows)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert started[0].returncode == -9
