"""Numbers in words."""

from __future__ import annotations

import pytest

from unstuck.model import Case
from unstuck.report.screen import clean
from unstuck.report.wording import program, sure


@pytest.mark.parametrize(
    ("confidence", "words"),
    [(1.0, "99 % sure"), (0.97, "97 % sure"), (0.8, "likely, 80 % sure"), (0.6, "a suspicion, 60 % sure")],
)
def test_confidence(confidence: float, words: str) -> None:
    assert sure(confidence) == words


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "train.py", "-v"), "train.py"),
        (("/usr/bin/python3.11", "-u", "src/train.py"), "train.py"),
        (("python", "-m", "pkg.train", "x"), "-m pkg.train"),
        (("torchrun", "--nproc", "2", "train.py"), "torchrun"),
        ((), ""),
    ],
)
def test_the_program_is_named_without_its_interpreter(command: tuple[str, ...], name: str) -> None:
    assert program(Case(command=command)) == name


def test_unprintable_characters_are_written_out() -> None:
    assert clean("a\tb\x07\x9b") == "a   b\\x07\\x9b"
