"""A page of styled lines, wrapped to a width: the one place that touches rich, imported when something is shown."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from unstuck.report.wording import clean

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

Piece = str | tuple[str, str]
"""Text, or text and its style."""


class Page:
    def __init__(self, *, color: bool, width: int, unicode: bool) -> None:
        from rich.console import Console

        self.width = max(40, width)
        self.unicode = unicode
        self._lines: list[Text] = []
        self._console = Console(
            file=io.StringIO(),
            width=self.width,
            force_terminal=color,
            color_system="standard" if color else None,
            no_color=not color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def glyph(self, name: str) -> str:
        return _GLYPHS[name][0 if self.unicode else 1]

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

    def banner(self, parts: Iterable[Piece]) -> None:
        """Add a rule across the page with as many of the parts in it as fit."""
        rule, dot = self.glyph("rule"), self.glyph("dot")
        text = self._text([(rule * 2, "dim")])
        for place, part in enumerate(parts):
            more = self._text([(f" {dot} " if place else " ", "dim"), part])
            if place and text.cell_len + more.cell_len > self.width - 4:
                break
            text.append_text(more)
        text.append_text(self._text([(" " + rule * max(0, self.width - 1 - text.cell_len), "dim")]))
        text.truncate(self.width, overflow="crop")
        self._lines.append(text)

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
            words, style = (piece, "") if isinstance(piece, str) else piece
            text.append(clean(words, self.unicode), style)
        return text
