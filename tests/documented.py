"""The commands that README and docs show: lines after `$` in their console blocks, and what messages say to run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
_BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Command(NamedTuple):
    text: str
    page: Path

    @property
    def by_hand(self) -> bool:
        """Written for a reader to type as it stands; on the page of a message it has names of the reader's own."""
        return self.page.parent.name != "messages"


def commands() -> list[Command]:
    """Each once, without its comment."""
    found: dict[str, Command] = {}
    for page in PAGES:
        for kind, block in _BLOCK.findall(page.read_text()):
            for line in block.splitlines():
                if kind == "sh" or line.startswith("$ "):
                    text = re.sub(r"\s+#.*", "", line.removeprefix("$ ")).strip()
                    found.setdefault(text, Command(text, page))
    return list(found.values())
