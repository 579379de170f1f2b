"""A notebook: findings beneath the cell that runs, and cells with a number and a source that can be read from outside.

A cell is compiled under the name of a file that does not exist. It is written there while we watch, as the debugger of
Jupyter does too: whoever looks at the process from outside then finds the source of its lines.
"""

from __future__ import annotations

import contextvars
import linecache
import os
import sys
from typing import Any

MAX_BYTES = 1 << 20  # of a cell that is written


def shell() -> Any:
    """The IPython of a notebook; None in a terminal or a script."""
    found = sys.modules["IPython"].get_ipython()
    return found if found is not None and hasattr(found, "kernel") else None


def show(page: str) -> None:
    """In the output of the cell that runs now, also from a thread that an earlier cell has started."""
    from IPython.display import HTML, display

    contextvars.Context().run(display, HTML(page))


class Cells:
    """Writes each cell to its file, and its number into the journal, when it has been compiled and is about to run."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._numbers: dict[str, int] = {}
        self._written: set[str] = set()
        self._note()
        shell.ast_transformers.append(self)

    def visit(self, tree: Any) -> Any:
        """IPython calls this with what it is about to run. Nothing is transformed."""
        try:
            self._note()
        except Exception:  # of an IPython of another kind: its cells have no numbers then
            pass
        return tree

    def close(self) -> None:
        self._shell.ast_transformers[:] = [each for each in self._shell.ast_transformers if each is not self]
        for file in self._written:
            try:
                os.unlink(file)
            except OSError:
                pass

    def _note(self) -> None:
        from unstuck.recorder import journal
        from unstuck.recorder.records.loops import NotebookCell

        for file, entry in list(linecache.cache.items()):
            if "/ipykernel_" not in file or len(entry) < 3:
                continue
            _, label = self._shell.compile.format_code_name(file) or ("", "")  # In[3]
            number = int("".join(filter(str.isdigit, label)) or 0)
            if not number or self._numbers.get(file) == number:
                continue
            self._numbers[file] = number
            journal.write(NotebookCell(file=file, number=number))
            self._write(file, "".join(entry[2]))

    def _write(self, file: str, source: str) -> None:
        if os.path.exists(file) or len(source) > MAX_BYTES:
            return
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        with open(file, "x", encoding="utf-8") as copy:
            self._written.add(file)
            copy.write(source)
