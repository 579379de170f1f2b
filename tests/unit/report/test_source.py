"""The lines that are shown around a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.model import Case, Where
from unstuck.report.code_excerpt import excerpt

TEXT = """\
import fcntl


class Shard:
    def __init__(self):
        self.items = []

    def __getitem__(self, index):

        with self.lock:
            return self.items[index]

    @property
    def length(self):
        return 1
"""


@pytest.mark.parametrize(
    ("line", "around", "first", "last"),
    [
        (11, 3, 8, 11),  # not the blank line below, nor the next method
        (10, 3, 8, 11),
        (10, 1, 10, 11),  # not the blank line above
        (6, 3, 5, 6),
        (1, 3, 1, 1),
        (15, 3, 14, 15),
    ],
)
def test_what_belongs_together_is_shown(tmp_path: Path, line: int, around: int, first: int, last: int) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    lines = excerpt(Where("a.py", line), Case(cwd=str(tmp_path)), around).lines
    assert (lines[0].number, lines[-1].number) == (first, last)
    assert [shown.number for shown in lines if shown.marked] == [line]
    assert not lines[0].text.startswith(" ")


def test_a_line_beyond_the_end_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    found = excerpt(Where("a.py", 99), Case(cwd=str(tmp_path)), 3)
    assert found.lines == ()
    assert "changed" in found.note
