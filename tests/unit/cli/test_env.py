"""`env`: what this machine allows, tried out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from unstuck.cli import machine, main
from unstuck.observer import cgroups, stacks
from unstuck.supervise import flight_folder


def rows_of(text: str) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in json.loads(text)["rows"]}


def test_every_row_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--json", "--python", sys.executable]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["python"]["value"] == sys.executable
    assert rows["python version"]["value"] == ".".join(map(str, sys.version_info[:3]))
    wanted = ["torch", "kernel", "/proc", "cores", "memory limit", "/dev/shm", "open files", "core dumps"]
    assert set(wanted) <= set(rows)
    assert {"flight files", "ptrace", "system calls", "py-spy"} <= set(rows)


def test_as_text_it_ends_with_what_works(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [machine.Row("a", "1"), machine.Row("b", "2", "half", None), machine.Row("py-spy", "no", "no stacks", False)]
    monkeypatch.setattr(machine, "rows", lambda: rows)
    assert main(["env", "--python", sys.executable]) == 0
    text = capsys.readouterr().out
    assert "✖ py-spy" in text
    assert "Does not work here: py-spy." in text
    assert "Works with limits: b." in text


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


def test_the_memory_limit_is_the_tightest_around_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "job"
    inner.mkdir()
    for folder, limit in ((tmp_path, 1 << 30), (inner, 2 << 30)):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(f"{100 << 20}\n")
    monkeypatch.setattr(cgroups, "membership", lambda _: (2, "/job"))
    monkeypatch.setattr(cgroups, "folders", lambda *_: [str(inner), str(tmp_path)])
    row = next(row for row in machine.rows() if row.name == "memory limit")
    assert row.value == "1 GB, 100 MB used"
    monkeypatch.setattr(cgroups, "membership", lambda _: None)
    assert next(row for row in machine.rows() if row.name == "memory limit").value == "none"


def test_the_mount_table_names_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = "/dev/a / ext4 rw 0 0\nserver:/x /scratch\\040x nfs4 rw 0 0\n"
    monkeypatch.setattr(flight_folder, "read_text", lambda _: mounts)
    assert flight_folder.file_system("/scratch x/tmp") == "nfs4"
    assert flight_folder.file_system("/scratch xy") == "ext4"


def test_without_a_place_for_flight_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_folder, "file_system", lambda _: "nfs4")
    row = next(row for row in machine.rows() if row.name == "flight files")
    assert row.ok is False
    assert "network file system" in row.meaning


def test_what_the_look_into_a_child_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spy = tmp_path / "py-spy"
    monkeypatch.setattr(stacks, "find_py_spy", lambda: str(spy))
    thread = {"thread_id": 1, "os_thread_id": 1, "thread_name": "MainThread", "active": True, "frames": []}
    spy.write_text(f"#!/bin/sh\necho '{json.dumps([thread])}'\n")
    spy.chmod(0o755)
    assert list(machine.child_rows())[-1].ok is True
    spy.write_text("#!/bin/sh\necho Permission Denied >&2\nexit 1\n")
    row = list(machine.child_rows())[-1]
    assert row.ok is False
    assert "ermission" in row.value
    assert "SYS_PTRACE" in row.meaning
    monkeypatch.setattr(machine, "PY_SPY_SECONDS", 0.1)
    spy.write_text("#!/bin/sh\nexec sleep 5\n")
    assert list(machine.child_rows())[-1].value == "no answer within 0.1 s"
    monkeypatch.setattr(stacks, "find_py_spy", lambda: None)
    assert "pip install py-spy" in list(machine.child_rows())[-1].value


@pytest.mark.parametrize(("scope", "ok"), [("0", True), ("1", True), ("2", False), ("3", False)])
def test_yama(scope: str, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(machine, "YAMA", tmp_path / "scope")
    row = next(iter(machine.child_rows()))
    assert (row.value, row.ok) == (f"Yama {scope}", ok)


def test_the_child_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def keep(*args: object, **more: object) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **more))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", keep)
    rows = machine.child_rows()
    next(rows)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert started[0].returncode == -9
