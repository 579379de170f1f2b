"""Draws docs/answer.svg: a real answer as a terminal shows it, from the Case that a script of the corpus left."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text
from write_pages import COLUMNS, DOCS, answer_of

from unstuck.report.screen import Screen

PICTURE = DOCS / "answer.svg"
SCRIPT, RULE = "attention-masked-row", "nonfinite-born"


def picture() -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="standard", force_terminal=True)
    console.print(Text(f"$ unstuck run --stop-on error {SCRIPT}.py", "bold"))
    console.print()
    answer = answer_of(SCRIPT, Screen(color=True, width=COLUMNS), RULE)
    console.print(Text.from_ansi(answer))
    svg = console.export_svg(title="unstuck", unique_id="answer")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # nothing is fetched from elsewhere
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def main() -> int:
    Path(PICTURE).write_text(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
