"""A page of styled lines, wrapped to a width: the one place that touches rich, imported when something is shown."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from unstuck.report.screen import Screen

if TYPE_CHECKING:
    from rich.text import Text

_GLYPHS = {
    "error": ("✖", "x"),
    "warning": ("▲", "!"),
    "info": ("●", "i"),
    "recovered": ("✔", "+"),
    "unknown": ("?", "?"),
    "bullet": ("•", "*"),
    "arrow": ("❱", ">"),
    "bar": ("│", "|"),
    "mark": ("▲", "^"),
    "rule": ("─", "-"),
    "dot": ("·", "-"),
    "ellipsis": ("…", "..."),
}

MIN_COLUMNS = 40  # narrower, the words of a sentence stand below each other

Piece = str | tuple[str, str]
"""Text, or text and its style."""


class Page:
    def __init__(self, screen: Screen) -> None:
        from rich.console import Console

        self.screen = screen
        self.width = max(MIN_COLUMNS, screen.width)
        self._lines: list[Text] = []
        self._console = Console(
            file=io.StringIO(),
            width=self.width,
            force_terminal=screen.color,
            color_system="standard" if screen.color else None,
            no_color=not screen.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def glyph(self, name: str) -> str:
        return _GLYPHS[name][0 if self.screen.unicode else 1]

    def blank(self) -> None:
        if self._lines and self._lines[-1].plain:
            self._lines.append(self._text([]))

    def line(self, *pieces: Piece, indent: int = 0, lead: Piece = "") -> None:
        """Add text, wrapped. `lead` stands before the first line; the others hang beneath its end."""
        head = self._text([lead])
        room = max(10, self.width - indent - head.cell_len)
        first = True
        for part in self._text(pieces).wrap(self._console, room, overflow="fold"):
            part.rstrip()
            whole = self._text([" " * indent])
            whole.append_text(head if first else self._text([" " * head.cell_len]))
            whole.append_text(part)
            whole.rstrip()
            self._lines.append(whole)
            first = False

    def cut(self, *pieces: Piece, indent: int = 0) -> None:
        """Add text on one line, cut where it is too long: source is clearer cut than wrapped."""
        text = self._text([" " * indent, *pieces])
        if text.cell_len > self.width:
            ellipsis = self.glyph("ellipsis")
            text.truncate(self.width - len(ellipsis), overflow="crop")
            text.append(ellipsis, "dim")
        text.rstrip()
        self._lines.append(text)

    def whole(self, *pieces: Piece, indent: int = 0) -> None:
        """Add text on one line, however long: a command broken in two could not be pasted."""
        self._lines.append(self._text([" " * indent, *pieces]))

    def flow(self, parts: Iterable[Piece], indent: int = 0) -> None:
        """Add the parts with a dot between each two; a line breaks between parts, not within one."""
        dot: Piece = (f" {self.glyph('dot')} ", "dim")
        row: list[Piece] = []
        for part in parts:
            longer = [*row, dot, part] if row else [part]
            if row and indent + self._text(longer).cell_len > self.width:
                self.line(*row, indent=indent)
                longer = [part]
            row = longer
        if row:
            self.line(*row, indent=indent)

    def heading(self, words: str, note: str = "", indent: int = 2) -> None:
        """Add a section's heading, with a blank line above."""
        self.blank()
        self.line((words, "bold"), (f"  {note}" if note else "", "dim"), indent=indent)

    def bullets(self, lines: Iterable[Piece], indent: int = 4) -> None:
        for line in lines:
            self.line(line, lead=(f"{self.glyph('bullet')} ", "dim"), indent=indent)

    def verdict(self, glyph: str, style: str, words: str) -> None:
        """Add the answer in one sentence, behind its sign."""
        self.line((words, "bold"), lead=(f"{self.glyph(glyph)} ", style))

    def names(self, pairs: Iterable[tuple[str, str]], indent: int, column: int = 0) -> None:
        """Add a line for each name and what is said about it, in two columns; `column`: how wide the first is."""
        pairs = list(pairs)
        column = column or max((len(name) for name, _ in pairs), default=0) + 2
        for name, words in pairs:
            self.line(words, lead=(name.ljust(column), "cyan"), indent=indent)

    def table(
        self, head: Sequence[str], rows: Iterable[Sequence[Piece]], indent: int = 2, left: Sequence[int] = ()
    ) -> None:
        """Add rows of cells, the last one free text, wrapped. Columns are right-aligned, except those of `left`."""
        table = [[(cell, "dim") for cell in head], *([_styled(cell) for cell in row] for row in rows)]
        widths = [max(len(row[column][0]) for row in table) for column in range(len(head) - 1)]
        for row in table if any(head) else table[1:]:
            cells = [
                cell.ljust(width) if column in left else cell.rjust(width)
                for column, ((cell, _), width) in enumerate(zip(row, widths, strict=False))
            ]
            self.line(row[-1], lead=("  ".join([*cells, ""]), row[0][1]), indent=indent)

    def diff(self, text: str, indent: int = 0, *, wrap: bool = False) -> None:
        add = self.line if wrap else self.whole
        for line in text.expandtabs(4).splitlines():
            add((line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")), indent=indent)

    def next_command(self, command: str) -> None:
        """Add what to type next, where there is something."""
        if command:
            self.blank()
            self.whole(("next: ", "dim"), command, indent=2)

    def banner(self, *parts: str) -> None:
        """Add a rule across the page, with our name and as many of the parts in it as fit."""
        rule, dot = self.glyph("rule"), self.glyph("dot")
        text = self._text([(f"{rule * 2} ", "dim"), ("unstuck", "bold")])
        for part in filter(None, parts):
            more = self._text([(f" {dot} {part}", "dim")])
            if text.cell_len + more.cell_len > self.width - 4:
                break
            text.append_text(more)
        text.append_text(self._text([(" " + rule * max(0, self.width - 1 - text.cell_len), "dim")]))
        text.truncate(self.width, overflow="crop")
        self._lines.append(text)
        self.blank()

    def __str__(self) -> str:
        for line in self._lines:
            self._console.print(line, soft_wrap=True)
        file = self._console.file
        assert isinstance(file, io.StringIO)
        return file.getvalue().strip("\n") + "\n"

    def _text(self, pieces: Iterable[Piece]) -> Text:
        from rich.text import Text

        text = Text()
        for piece in pieces:
            words, style = _styled(piece)
            text.append(self.screen.clean(words), style)
        return text


def _styled(piece: Piece) -> tuple[str, str]:
    return (piece, "") if isinstance(piece, str) else piece
