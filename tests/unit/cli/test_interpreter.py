"""Which Python is chosen, and what it says of itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from unstuck.cli import interpreter
from unstuck.cli.interpreter import ask_python, choose_python, runs_as_module
from unstuck.errors import UsageError


def program(path: Path, text: str = "#!/bin/sh\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _nothing_active(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setattr(sys, "orig_argv", ["python", "/bin/unstuck", "run"])
    monkeypatch.setattr(interpreter, "_has_torch", lambda: False)


def test_asked_for_by_path_name_or_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "env" / "bin" / "python")
    monkeypatch.setenv("PATH", str(tmp_path / "env" / "bin"))
    for asked in (path, "python", str(tmp_path / "env")):
        assert choose_python(asked) == (path, "set by --python")


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "bin" / "python")
    monkeypatch.chdir(tmp_path)
    assert choose_python("bin/python")[0] == path


@pytest.mark.parametrize(("name", "cause"), [("nopython", "not on PATH"), ("./x/python", "does not exist")])
def test_asked_for_but_not_there(name: str, cause: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_python(name)
    assert cause in caught.value.cause


def test_asked_for_but_no_program(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("")
    with pytest.raises(UsageError) as caught:
        choose_python(str(tmp_path / "python"))
    assert "not an executable program" in caught.value.cause


def test_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv = program(tmp_path / "venv" / "bin" / "python")
    conda = program(tmp_path / "conda" / "bin" / "python")
    first, second = program(tmp_path / "bin" / "python"), program(tmp_path / "bin3" / "python3")
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "unstuck", "run"])
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), str(tmp_path / "bin3")]))
    monkeypatch.setattr(interpreter, "_has_torch", lambda: True)
    chosen = [choose_python(None)[0]]
    monkeypatch.setattr(sys, "orig_argv", ["python", "/bin/unstuck"])
    chosen.append(choose_python(None)[0])
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "deleted"))
    chosen.append(choose_python(None)[0])
    monkeypatch.delenv("CONDA_PREFIX")
    chosen.append(choose_python(None)[0])
    monkeypatch.setattr(interpreter, "_has_torch", lambda: False)
    chosen.append(choose_python(None)[0])
    (tmp_path / "bin" / "python").unlink()
    chosen.append(choose_python(None)[0])
    (tmp_path / "bin3" / "python3").unlink()
    chosen.append(choose_python(None)[0])
    assert chosen == [sys.executable, venv, conda, sys.executable, first, second, sys.executable]


@pytest.mark.parametrize(
    ("command", "is_module"),
    [
        (["python", "-m", "unstuck", "run"], True),
        (["python", "-Im", "unstuck"], True),
        (["python", "-munstuck"], True),
        (["python", "-X", "dev", "-W", "error", "-m", "unstuck"], True),
        (["python", "-Xdev", "-m", "unstuck"], True),
        (["python", "/bin/unstuck", "run", "--", "python", "-m", "unstuck"], False),
        (["python", "-m", "pytest", "-m", "unstuck"], False),
        (["python", "-c", "pass", "-m", "unstuck"], False),
        (["python"], False),
    ],
)
def test_python_m_unstuck_is_told_apart(command: list[str], is_module: bool) -> None:
    assert runs_as_module(command) is is_module


def test_an_interpreter_says_what_it_is() -> None:
    answer = ask_python(sys.executable)
    assert answer.trouble == ""
    assert answer.version == ".".join(map(str, sys.version_info[:3]))


def test_chatter_before_the_answer_is_passed_over(tmp_path: Path) -> None:
    text = '#!/bin/sh\necho hello\necho \'{"version": "3.9.1", "executable": "x", "torch": null}\'\n'
    assert ask_python(program(tmp_path / "python", text)).version == "3.9.1"


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("#!/bin/sh\necho no such module >&2; exit 3\n", "status 3: no such module"),
        ("#!/bin/sh\necho hello\n", "not the JSON that was expected"),
        ("#!/bin/sh\n", "not the JSON that was expected"),
        ("#!/bin/sh\nexec sleep 30\n", "did not answer within"),
        ("#!/nonexistent/shell\n", "No such file"),
    ],
)
def test_an_interpreter_in_trouble(tmp_path: Path, text: str, trouble: str) -> None:
    assert trouble in ask_python(program(tmp_path / "python", text), limit=0.3 if "sleep" in text else 20).trouble
