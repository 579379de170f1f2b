"""The command line as a whole: quick help, one place for errors, exit codes a script can rely on."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from unstuck import cli
from unstuck.cli import report
from unstuck.cli import run as run_command
from unstuck.errors import OwnFault, UsageError

Raise = Callable[[argparse.Namespace], int]


def raising(error: BaseException) -> Raise:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


@pytest.fixture
def report_does(monkeypatch: pytest.MonkeyPatch) -> Callable[[Raise], None]:
    return lambda run: monkeypatch.setattr(report, "run", run)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert f"\n    {name} " in text


@pytest.mark.parametrize("words", [[], *([name] for name in cli.COMMANDS)], ids=lambda words: " ".join(words))
def test_help_fits_a_terminal_of_80_columns(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(" ".join(["usage: unstuck", *words]))
    assert max(map(len, text.splitlines())) < 80


def test_help_is_cheap_and_imports_nothing_heavy() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import sys; from unstuck.cli import main; main(['--help']);"
        "heavy = {'rich', 'dataclasses', 'subprocess', 'torch', 'jinja2', 'json'} & set(sys.modules);"
        "sys.exit(' '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stderr == ""
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.2  # 0.06 s when alone


def test_a_users_error_is_told_without_a_traceback(
    report_does: Callable[[Raise], None], capsys: pytest.CaptureFixture[str]
) -> None:
    report_does(raising(UsageError("cannot do it", cause="no disk", next_command="df -h")))
    assert cli.main(["report"]) == 2
    assert capsys.readouterr().err == "unstuck: cannot do it\n  likely cause: no disk\n  next: df -h\n"


@pytest.mark.parametrize("argv", [["-v", "report"], ["report", "-v"]])
def test_verbose_shows_the_traceback(
    argv: list[str], report_does: Callable[[Raise], None], capsys: pytest.CaptureFixture[str]
) -> None:
    report_does(raising(UsageError("cannot do it")))
    assert cli.main(argv) == 2
    assert "Traceback" in capsys.readouterr().err


def test_verbose_before_run_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def run(args: argparse.Namespace) -> int:
        seen.append(bool(args.verbose))
        return 0

    monkeypatch.setattr(run_command, "run", run)
    assert cli.main(["-v", "run", "x.py"]) == 0
    assert cli.main(["run", "x.py", "-v"]) == 0
    assert seen == [True, False]


@pytest.mark.parametrize("error", [OwnFault("broken"), ZeroDivisionError("oops")])
def test_a_fault_of_ours_is_70(
    error: Exception, report_does: Callable[[Raise], None], capsys: pytest.CaptureFixture[str]
) -> None:
    report_does(raising(error))
    assert cli.main(["report"]) == 70
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_fault_says_how_to_report_it(
    report_does: Callable[[Raise], None], capsys: pytest.CaptureFixture[str]
) -> None:
    report_does(raising(ZeroDivisionError("oops")))
    cli.main(["report"])
    said = capsys.readouterr().err
    assert "internal error" in said
    assert "ZeroDivisionError: oops" in said
    assert "-v" in said


def test_ctrl_c_is_130(report_does: Callable[[Raise], None], capsys: pytest.CaptureFixture[str]) -> None:
    report_does(raising(KeyboardInterrupt()))
    assert cli.main(["report"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("argv", "said", "next_command"),
    [
        (["nonsense"], "no command is called nonsense (there are: run, ", "unstuck --help"),
        (["report", "--nonsense"], "unrecognized arguments: --nonsense", "unstuck report --help"),
        (["run", "--on-hang", "maybe", "x.py"], "invalid choice: 'maybe'", "unstuck run --help"),
        (["report", "--jsn"], "did you mean --json?", "unstuck report --help"),
    ],
)
def test_wrong_usage_is_2(argv: list[str], said: str, next_command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 2
    text = capsys.readouterr().err
    assert said in text
    assert text.splitlines()[-1] == f"  next: {next_command}"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    child = subprocess.Popen([sys.executable, "-m", "unstuck", "explain"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, said = child.communicate(timeout=30)
    assert said == b""
    assert child.returncode == cli.BROKEN_PIPE


def test_python_m_is_the_same() -> None:
    done = subprocess.run([sys.executable, "-m", "unstuck", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unstuck ")
