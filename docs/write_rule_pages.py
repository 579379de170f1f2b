"""Writes docs/rules/: one page a rule, from the rule's own docstring, and a list of them all."""

from __future__ import annotations

import sys
from pathlib import Path

from unstuck.rules import RULES
from unstuck.rules.rule import HEADINGS, Rule

FOLDER = Path(__file__).parent / "rules"


def page(rule: Rule) -> str:
    """The docstring as Markdown: its fixed headings become headings."""
    lines = [f"# {rule.name}", ""]
    for line in rule.page.splitlines()[1:]:
        if line in HEADINGS:
            lines.append(f"## {line}")
            lines.append("")
        else:
            lines.append(line.removeprefix("    "))
    return f"{lines[0]}\n\n{rule.summary[:1].upper()}{rule.summary[1:]}\n" + "\n".join(lines[1:]) + "\n"


def index() -> str:
    families = dict.fromkeys(rule.family for rule in RULES)
    parts = ["# The rules", "", "One rule is one possible cause. `unstuck explain NAME` shows the same page.", ""]
    for family in families:
        parts += [f"## {family}", ""]
        parts += [f"- [{r.name}]({r.name}.md): {r.summary}" for r in RULES if r.family == family]
        parts.append("")
    return "\n".join(parts)


def pages() -> dict[Path, str]:
    return {FOLDER / "README.md": index(), **{FOLDER / f"{rule.name}.md": page(rule) for rule in RULES}}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
