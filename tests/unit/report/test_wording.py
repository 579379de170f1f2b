"""Numbers in words."""

from __future__ import annotations

import pytest

from unstuck.model import Case
from unstuck.report.wording import clean, duration, program, sure


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0018, "1.8 ms"),
        (0.05, "50 ms"),
        (0.3, "0.3 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (320, "5 min 20 s"),
        (3600, "1 h"),
        (11520, "3 h 12 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


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
