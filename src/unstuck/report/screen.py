"""What a stream can show: colour, width, Unicode; and text that cannot disturb it."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple, TextIO

MAX_COLUMNS = 100  # longer lines are hard to read
_ASCII = str.maketrans(
    {
        "·": "-",
        "…": "...",
        "–": "-",
        "—": "-",
        "×": "x",
        "→": "->",
        "←": "<-",
        "≥": ">=",
        "≤": "<=",
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "µ": "u",
        "•": "*",
        "\u00a0": " ",
        "\u202f": " ",
    }
)


class Screen(NamedTuple):
    color: bool = False
    width: int = 80
    unicode: bool = True

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """Colour only on a terminal that has it, and never against NO_COLOR; 80 columns where there is no terminal."""
        try:
            terminal = stream.isatty()
        except (ValueError, AttributeError):
            terminal = False
        return cls(
            color=terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
            width=min(MAX_COLUMNS, shutil.get_terminal_size((80, 24)).columns) if terminal else 80,
            unicode=(getattr(stream, "encoding", None) or "").lower().startswith("utf"),
        )

    def clean(self, text: str) -> str:
        return clean(text, self.unicode)


def clean(text: str, unicode: bool = True) -> str:
    """Names and source lines may hold escape codes and line ends: these are written out."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text.expandtabs(4).replace("\n", " "))
    return text if unicode else text.translate(_ASCII).encode("ascii", "replace").decode()
