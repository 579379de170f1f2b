"""Places in a notebook as a person knows them: `cell 3, line 2`, not the name under which the cell was compiled."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from unstuck.model import Case, Finding, Where

_TYPED = re.compile(r"<ipython-input-(\d+)-\w+>")  # in a terminal: the number is in the name


def in_cells(case: Case, finding: Finding) -> Finding:
    """The same finding, its files and all that is said of them named by the numbers of cells."""
    numbers = {os.path.basename(cell.file): cell.number for cell in case.cells}
    if not numbers and not _TYPED.search(finding.where.file or ""):
        return finding
    files = "|".join([*map(re.escape, numbers), _TYPED.pattern])
    pattern = re.compile(rf"(?:[\w./-]*/)?({files})(?::(\d+))?")

    def say(found: re.Match[str]) -> str:
        number = numbers.get(found[1]) or found[2]
        return f"cell {number}, line {found[3]}" if found[3] else f"cell {number}"

    def text(line: str) -> str:
        return pattern.sub(say, line)

    def place(where: Where) -> Where:
        return replace(where, file=text(where.file)) if where.file else where

    return replace(
        finding,
        title=text(finding.title),
        evidence=tuple(map(text, finding.evidence)),
        where=place(finding.where),
        also=tuple(map(place, finding.also)),
        fix=replace(finding.fix, text=text(finding.fix.text)),
        consequences=tuple(map(text, finding.consequences)),
    )


def file_of_cell(case: Case, name: str) -> str:
    """The file behind `cell 3`; any other name as it is."""
    return next((cell.file for cell in reversed(case.cells) if f"cell {cell.number}" == name), name)
