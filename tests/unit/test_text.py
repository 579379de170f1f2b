"""Amounts in words: one way to say each, whoever says it."""

from __future__ import annotations

import pytest

from unstuck import text
from unstuck.rules import words


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (40e-6, "40 µs"), (0.0021, "2.1 ms"), (0.05, "50 ms"), (0.5, "0.5 s"), (12.4, "12 s"), (119.4, "119 s"),
        (120, "2 min"), (200, "3 min 20 s"), (9.96, "10 s"), (11520, "3 h 12 min"), (3700, "1 h 1 min"), (7200, "2 h"),
    ],
)  # fmt: skip
def test_seconds(value: float, said: str) -> None:
    assert text.seconds(value) == words.seconds(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (512, "512 bytes"),
        (64 << 20, "64 MB"),
        (int(3.14 * 2**20), "3.1 MB"),
        (700 << 20, "700 MB"),
        (3 << 29, "1.5 GB"),
    ],
)
def test_sizes(value: float, said: str) -> None:
    assert text.size(value) == words.size(value) == said


def test_spots() -> None:
    assert text.spot("/x/data.py", 31, "Shard.__getitem__") == "data.py:31 in Shard.__getitem__"
    assert text.spot("/x/train.py", 7, "<module>") == "train.py:7"


@pytest.mark.parametrize(
    ("title", "read_on"),
    [
        ("The epoch never ends", "the epoch never ends"),
        ("NaN gradient", "NaN gradient"),
        ("CUDA out of memory", "CUDA out of memory"),
        ("`a.py` waits", "`a.py` waits"),
        ("", ""),
    ],
)
def test_a_title_in_the_middle_of_a_sentence(title: str, read_on: str) -> None:
    assert text.in_sentence(title) == read_on
