"""The first thing typed: whatever it is, the answer ends with a command that can be pasted."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path

import pytest

import unstuck
from unstuck import cli

SOURCES = sorted(Path(unstuck.__file__).parent.rglob("*.py"))


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    return (said.out + said.err).splitlines()[-1].strip()


@pytest.mark.parametrize(
    ("scripts", "command"),
    [
        ((), "unstuck demo"),
        (("a.py", "b.py"), "unstuck demo"),
        (("a.py", "b.py", "train.py"), "unstuck run train.py"),
        (("finetune.py", "setup.py"), "unstuck run finetune.py"),
    ],
)
def test_alone_it_says_the_next_command(
    scripts: tuple[str, ...], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in scripts:
        Path(name).touch()
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == f"  next: {command}"
    assert max(map(len, said.splitlines())) < 80


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("train.py --lr 0.1", "unstuck run train.py --lr 0.1"),
        ("'my train.py'", "unstuck run 'my train.py'"),
        ("-m package.train", "unstuck run -m package.train"),
        ("--on-hang stop train.py", "unstuck run --on-hang stop train.py"),
        ("--stop-on=error train.py", "unstuck run --stop-on=error train.py"),
        ("-v train.py", "unstuck run train.py"),
        ("atach 4711", "unstuck attach 4711"),
        ("Run train.py", "unstuck run train.py"),
        ("reprot", "unstuck report"),
        ("4711", "unstuck attach 4711"),
        ("sh job.sh", "unstuck run -- sh job.sh"),
        ("python3 train.py", "unstuck run train.py"),
        ("file-lock-held", "unstuck explain file-lock-held"),
        ("'Too many open files'", "unstuck explain 'Too many open files'"),
        ("--nonsense", "unstuck --help"),
        ("nonsense", "unstuck --help"),
        ("-v", "unstuck demo"),
    ],
)
def test_what_was_probably_meant(words: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(shlex.split(words)) == 2
    said = capsys.readouterr().err
    assert "usage:" not in said
    assert said.splitlines()[-1] == f"  next: {command}"


@pytest.mark.parametrize("words", ["", "explain", "explain file-lock-held", "env", "demo --list"])
def test_the_last_line_is_a_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(words.split())
    assert last_line(capsys).startswith("next: unstuck ")


def next_commands(path: Path) -> list[str]:
    """What the source has as next_command=…, a word of the reader's own in place of each value."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "next_command"]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "next_command":
            given += node.args
        for value in given:
            found += [_text(part) for part in ast.walk(value) if isinstance(part, ast.JoinedStr)]
            inside = {id(c) for part in ast.walk(value) if isinstance(part, ast.JoinedStr) for c in ast.walk(part)}
            found += [
                part.value
                for part in ast.walk(value)
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inside
            ]
    return [text for text in found if " " in text]


def _text(node: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)


@pytest.mark.parametrize(
    "command", sorted({command for path in SOURCES for command in next_commands(path)}), ids=lambda text: str(text)
)
def test_every_next_command_can_be_pasted(command: str) -> None:
    """No remark in brackets, no dots in place of a script: a shell would choke on the one and look for the other."""
    assert not re.search(r"\s\(|…", command)
    words = shlex.split(command)
    if "unstuck" in words[:1]:
        assert words[1] in (*cli.COMMANDS, "x", "--help"), command


def test_there_are_next_commands_to_look_at() -> None:
    assert sum(len(next_commands(path)) for path in SOURCES) > 40


# --- elsewhere -----------------------------------------------------------------------------------------------

ELSEWHERE = """
import os, signal, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "resource", "pwd", "grp", "termios"):
            raise ImportError(name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules.pop(name, None)
for name in ("SIGCHLD", "SIGTSTP", "SIGSTOP", "SIGHUP", "SIGKILL", "SIGUSR1", "sigtimedwait", "pthread_sigmask"):
    delattr(signal, name)
for name in ("sched_getaffinity", "fork", "geteuid", "getuid", "posix_fallocate", "statvfs"):
    delattr(os, name)
sys.meta_path.insert(0, Missing())
sys.platform = sys.argv[1]
from unstuck.cli import main
sys.exit(main(sys.argv[2:]))
"""


def elsewhere(platform: str, *words: str) -> tuple[int, str]:
    """As on a system without /proc, fork and most signals."""
    import subprocess

    command = [sys.executable, "-c", ELSEWHERE, platform, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("win32", "Windows")])
def test_elsewhere_a_run_says_that_it_is_not_watched(platform: str, name: str) -> None:
    Path("train.py").write_text("print('trained'); raise SystemExit(7)\n")
    status, said = elsewhere(platform, "run", "train.py")
    assert status == 7
    assert "trained" in said
    assert f"unstuck: this run is not watched: unstuck watches trainings on Linux only; on {name}, " in said


@pytest.mark.parametrize("words", ["attach 1", "scan train.py", "tune train.py", "demo", "env"])
def test_elsewhere_what_only_watches_is_refused(words: str) -> None:
    status, said = elsewhere("darwin", *words.split())
    assert status == 2
    assert f"unstuck {words.split()[0]} needs Linux" in said
    assert "on macOS, `unstuck explain` and `unstuck report` work" in said


def test_elsewhere_explain_and_report_work() -> None:
    import gzip

    case = Path(__file__).parent.parent / "rules" / "cases" / "oom-decoded-cache.json.gz"
    Path("case.json").write_bytes(gzip.decompress(case.read_bytes()))
    status, said = elsewhere("win32", "report", "case.json")
    assert status == 0
    assert "out-of-memory-kill" in said
    assert "could not be seen" not in said
    status, said = elsewhere("win32", "explain", "bus error")
    assert (status, "Possible causes" in said) == (0, True)


def test_elsewhere_watch_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    watcher = unstuck.watch()
    assert not watcher.active
    assert watcher.note in capsys.readouterr().err
