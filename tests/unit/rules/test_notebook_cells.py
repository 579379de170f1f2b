"""Places in a notebook by the numbers of its cells."""

from __future__ import annotations

from unstuck.model import Case, Finding, Fix, Where
from unstuck.recorder.records.loops import NotebookCell
from unstuck.report.wording import location
from unstuck.rules.notebook_cells import file_of_cell, in_cells

FILE = "/tmp/ipykernel_77/3012345678.py"
CASE = Case(cells=(NotebookCell(file=FILE, number=2), NotebookCell(file=FILE, number=5)))


def finding(file: str, title: str = "Stuck at 3012345678.py:6 in get") -> Finding:
    return Finding(
        rule="main-spins", family="hang", severity="error", confidence=0.9, title=title,
        evidence=(f"it is at {FILE}:6, not in train.py:3", "(3012345678.py, lines 6–7)"), where=Where(file, 6, "get"),
        fix=Fix("Look at 3012345678.py:6."), seen_by="py-spy", also=(Where(FILE, 9),),
    )  # fmt: skip


def test_files_of_cells_are_their_numbers() -> None:
    """A cell that ran again has its latest number."""
    said = in_cells(CASE, finding(FILE))
    assert said.title == "Stuck at cell 5, line 6 in get"
    assert said.evidence == ("it is at cell 5, line 6, not in train.py:3", "(cell 5, lines 6–7)")
    assert said.fix.text == "Look at cell 5, line 6."
    assert [place.file for place in (said.where, *said.also)] == ["cell 5", "cell 5"]
    assert location(said.where, "") == "cell 5, line 6 in get"
    assert file_of_cell(CASE, "cell 5") == FILE
    assert file_of_cell(CASE, "train.py") == "train.py"


def test_a_terminal_s_names_hold_the_number() -> None:
    said = in_cells(Case(), finding("<ipython-input-3-0a1b2c>", "At <ipython-input-3-0a1b2c>:6"))
    assert said.where.file == "cell 3"
    assert said.title == "At cell 3, line 6"


def test_scripts_are_left_as_they_are() -> None:
    plain = finding("train.py")
    assert in_cells(Case(), plain) is plain
