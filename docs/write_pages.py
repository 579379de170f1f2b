"""Writes docs/rules/ and docs/messages/: a page each, from the texts that `unstuck explain` shows, and their lists."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from unstuck.explain import MESSAGES
from unstuck.explain.message import Message
from unstuck.rules import RULES
from unstuck.rules.rule import HEADINGS, Rule

RULE_FOLDER = Path(__file__).parent / "rules"
MESSAGE_FOLDER = Path(__file__).parent / "messages"


def rule_page(rule: Rule) -> str:
    """The docstring as Markdown: its fixed headings become headings."""
    lines = [f"# {rule.name}", ""]
    for line in rule.page.splitlines()[1:]:
        if line in HEADINGS:
            lines.append(f"## {line}")
            lines.append("")
        else:
            lines.append(line.removeprefix("    "))
    return f"{lines[0]}\n\n{rule.summary[:1].upper()}{rule.summary[1:]}\n" + "\n".join(lines[1:]) + "\n"


def rule_index() -> str:
    families = dict.fromkeys(rule.family for rule in RULES)
    parts = ["# The rules", "", "One rule is one possible cause. `unstuck explain NAME` shows the same page.", ""]
    for family in families:
        parts += [f"## {family}", ""]
        parts += [f"- [{r.name}]({r.name}.md): {r.summary}" for r in RULES if r.family == family]
        parts.append("")
    return "\n".join(parts)


def message_page(message: Message) -> str:
    parts = [
        f"# {message.name}",
        "\n".join(f"    {title}" for title in message.title.split(" · ")),
        textwrap.fill(message.means, 120),
        "## Possible causes",
        "\n".join(f"- **{rule}**: {tell}" for rule, tell in message.can_be),
        "## What to run",
        "\n".join(["```sh", *message.run, "```"]),
        "`unstuck explain RULE` says more about a cause; [the rules](../rules/README.md) have a page each.",
    ]
    return "\n\n".join(parts) + "\n"


def message_index() -> str:
    about = (
        'What people see on their terminal. `unstuck explain "the message"` finds the page in a pasted line or a whole '
        "traceback, `unstuck explain - < train.log` in a log. Where a text has several messages, the one that stands "
        "higher here comes first: it is nearer to the cause."
    )
    titles = [f"- [{m.name}]({m.name}.md): `` {m.title.partition(' · ')[0]} ``" for m in MESSAGES]
    return "\n".join(["# The messages", "", textwrap.fill(about, 120), "", *titles, ""])


def pages() -> dict[Path, str]:
    return {
        RULE_FOLDER / "README.md": rule_index(),
        **{RULE_FOLDER / f"{rule.name}.md": rule_page(rule) for rule in RULES},
        MESSAGE_FOLDER / "README.md": message_index(),
        **{MESSAGE_FOLDER / f"{message.name}.md": message_page(message) for message in MESSAGES},
    }


def main() -> int:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
