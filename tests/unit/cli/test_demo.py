"""`demo`: the scripts are there and small, and run as anybody's would."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from unstuck import cli
from unstuck.cli import demo, interpreter
from unstuck.cli import run as run_command
from unstuck.cli.interpreter import Interpreter


@pytest.fixture
def run_gives(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[list[str]]]:
    """Let `run` end with this status; returns what it was called with."""
    monkeypatch.setattr(interpreter, "choose_python", lambda asked: (asked or "/usr/bin/python", "why"))
    monkeypatch.setattr(interpreter, "ask_python", lambda _: Interpreter("3.11.1", "2.4"))

    def gives(status: int) -> list[list[str]]:
        called: list[list[str]] = []

        def run(args: argparse.Namespace) -> int:
            called.append([args.stop_on, args.python, *args.command])
            return status

        monkeypatch.setattr(run_command, "run", run)
        return called

    return gives


def test_six_demos_the_default_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--list"]) == 0
    *lines, blank, last = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == ["stuck-sample", "file-lock", "fork-lock", "full-pipe", "nan-loss", "never-ends"]
    assert (blank, last) == ("", "  next: unstuck demo file-lock")


@pytest.mark.parametrize("script", demo.available().values(), ids=lambda path: path.stem)
def test_each_is_small_and_needs_only_torch(script: Path) -> None:
    text = script.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 80
    assert ast.get_docstring(tree) == demo.summary(script)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= {"torch", *sys.stdlib_module_names}


def test_it_runs_as_a_run_that_stops(
    run_gives: Callable[[int], list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    called = run_gives(3)
    assert cli.main(["demo", "file-lock", "--python", "/my/python"]) == 0
    assert called == [["error", "/my/python", str(demo.FOLDER / "file_lock.py")]]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "unstuck demo file-lock: A feature cache" in said[0]


@pytest.mark.parametrize(("status", "wanted"), [(3, 0), (0, 1), (130, 130), (70, 70)])
def test_stopped_is_how_it_should_end(status: int, wanted: int, run_gives: Callable[[int], list[list[str]]]) -> None:
    run_gives(status)
    assert cli.main(["demo"]) == wanted


def test_without_torch_it_says_how_to_get_it(
    run_gives: Callable[[int], list[list[str]]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = run_gives(3)
    monkeypatch.setattr(interpreter, "ask_python", lambda _: Interpreter("3.11.1", None))
    assert cli.main(["demo"]) == 2
    assert "/usr/bin/python -m pip install torch" in capsys.readouterr().err
    assert called == []


def test_an_unknown_demo_names_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "nonsense"]) == 2
    assert "stuck-sample" in capsys.readouterr().err
