"""The quick reader of `run` lines says what argparse says, or leaves it to argparse."""

from __future__ import annotations

from typing import Any

import pytest

from unstuck.cli import build_parser
from unstuck.cli.plain_run import Words, read

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
    expected: dict[str, Any] = {name: getattr(full, name, False) for name in vars(Words())}
    if expected["command"][:1] != ["--"] and plain.command[:1] == ["--"]:
        expected["command"] = ["--", *expected["command"]]  # argparse drops it in some versions
    assert vars(plain) == expected


@pytest.mark.parametrize("line", LEFT_TO_ARGPARSE)
def test_it_leaves_the_rest_alone(line: str) -> None:
    assert read(line.split()) is None
