"""One table of options: the quick reader says what argparse says, or leaves it to argparse; the environment and
pyproject.toml know the same names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unstuck.cli import build_parser
from unstuck.cli.options import OPTIONS, read
from unstuck.cli.settings import Settings
from unstuck.supervise import Options

RIGHT = [
    "run train.py",
    "run train.py --epochs 3 -v --on-hang stop",
    "run --on-hang stop --stall-after 2.5 train.py -m x",
    "run --stop-on warning --on-hang=stop train.py --stop-on x",
    "run --stop-on=error -m package.train",
    "run --report=why.json --fail-on error --python py --grace 5 --detach -v train.py",
    "run -v -m package.train --lr 1",
    "run -- torchrun --nproc-per-node 2 train.py",
    "run --detach -- python -u train.py",
]
LEFT_TO_ARGPARSE = [
    "",
    "run",
    "run --help",
    "run --hang stop train.py",
    "run --on-hang maybe train.py",
    "run --stop-on never train.py",
    "run --stop-on",
    "run --stall-after",
    "run --stall-after soon train.py",
    "run --stall-after -1 train.py",
    "run --stall-after 0 train.py",
    "run --restart many train.py",
    "run --restart -1 train.py",
    "run --restart-on birth train.py",
    "run --on-hang stop",
    "run -m",
    "run --",
    "-v run train.py",
    "report",
]


@pytest.mark.parametrize("line", RIGHT)
def test_it_reads_what_argparse_reads(line: str) -> None:
    words = line.split()
    plain, full = read(words), build_parser(("run",)).parse_args(words)
    assert plain is not None
    assert plain.values == {option.name: getattr(full, option.name) for option in OPTIONS}
    expected: list[str] = full.command
    if expected[:1] != ["--"] and plain.command[:1] == ["--"]:
        expected = ["--", *expected]  # argparse drops it in some versions
    assert (plain.module, plain.command) == (full.module, expected)


@pytest.mark.parametrize("line", LEFT_TO_ARGPARSE)
def test_it_leaves_the_rest_alone(line: str) -> None:
    assert read(line.split()) is None


def test_a_run_knows_every_option() -> None:
    assert {option.name for option in OPTIONS} - {"python"} == set(Options.__annotations__)
    for option in OPTIONS:
        if option.name != "python":
            assert (option.default or None) == (getattr(Options(), option.name) or None)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: str(option.flag))
def test_the_environment_sets_every_option(option: Any, tmp_path: Path) -> None:
    given = {"choice": option.choices[-1:], "seconds": ("7",), "count": ("7",), "text": ("a",), "switch": ("yes",)}[
        option.kind
    ][0]
    settings = Settings({f"UNSTUCK_{option.name.upper()}": given}, str(tmp_path))
    wanted = {"seconds": 7.0, "count": 7, "switch": True}.get(option.kind, given)
    assert option.resolve(settings, None) == wanted
    assert (option.resolve(Settings({}, str(tmp_path)), None) or None) == option.default
