"""Completion knows every command and option, in each shell that is here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from unstuck import cli
from unstuck.cli.options import OPTIONS

Complete = Callable[[str], list[str]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """With `unstuck` on PATH, and a home of its own."""
    program = tmp_path / "unstuck"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m unstuck "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def in_bash(environ: dict[str, str]) -> Complete:
    def complete(line: str) -> list[str]:
        script = (
            'eval "$(unstuck completion bash)"\n'
            f"COMP_WORDS=({line.rpartition(' ')[0]} '{line.rpartition(' ')[2]}')\n"
            'COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _unstuck; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return _said(["bash", "--noprofile", "--norc", "-c", script], environ)

    return complete


def in_fish(environ: dict[str, str]) -> Complete:
    def complete(line: str) -> list[str]:
        script = f"source (unstuck completion fish | psub); complete -C '{line}'"
        return [said.partition("\t")[0] for said in _said(["fish", "--no-config", "-c", script], environ)]

    return complete


def _said(command: list[str], environ: dict[str, str]) -> list[str]:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_it_completes(shell: str, environ: dict[str, str]) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    complete = {"bash": in_bash, "fish": in_fish}[shell](environ)
    assert set(complete("unstuck ")) >= set(cli.COMMANDS)
    assert complete("unstuck atta") == ["attach"]
    assert set(complete("unstuck run --")) >= {f"--{option.flag}" for option in OPTIONS}
    assert set(complete("unstuck run --on-hang ")) == {"report", "stop", "heal"}
    assert complete("unstuck explain stale-l") == ["stale-lock-file"]
    assert "nan-loss" in complete("unstuck demo ")


def test_zsh_takes_it(environ: dict[str, str]) -> None:
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    script = 'eval "$(unstuck completion zsh)"; print $_comps[unstuck]; COMP_WORDS=(unstuck re); COMP_CWORD=1'
    assert "_bash_complete" in _said(["zsh", "-f", "-c", script], environ)[0]


def test_the_shell_is_that_of_the_person(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert cli.main(["completion"]) == 0
    assert "for fish" in capsys.readouterr().out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert cli.main(["completion"]) == 2
    assert "no completion for tcsh" in capsys.readouterr().err
