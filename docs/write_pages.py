"""Writes docs/rules/ and docs/messages/: a page each, from the texts that `unstuck explain` shows, and their lists.

A rule's page ends with a real answer, drawn from the Case that a script of the corpus left: nothing is run here."""

from __future__ import annotations

import gzip
import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

from unstuck.explain import MESSAGES
from unstuck.explain.message import Message
from unstuck.families import FAMILIES
from unstuck.report import code_excerpt, terminal
from unstuck.report.screen import Screen
from unstuck.rules import RULES
from unstuck.rules.diagnose import Diagnosis, diagnose
from unstuck.rules.rule import HEADINGS, Rule
from unstuck.serial import case_from

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
RULE_FOLDER = DOCS / "rules"
MESSAGE_FOLDER = DOCS / "messages"
CASES = ROOT / "tests" / "unit" / "rules" / "cases"
CORPUS = json.loads((ROOT / "tests" / "faults" / "expected.json").read_text())["faults"]
RECORDED_AT = "/project"  # what the saved Cases call the folder of this repository
COLUMNS = 80
NAMES = frozenset(rule.name for rule in RULES)


def rule_page(rule: Rule) -> str:
    """The docstring as Markdown, its fixed headings as headings; then what it looks like."""
    lines: list[str] = []
    for line in rule.page.splitlines()[1:]:
        lines += [f"## {line}", ""] if line in HEADINGS else [line.removeprefix("    ")]
    parts = [
        f"# {rule.name}",
        f"{rule.summary[:1].upper()}{rule.summary[1:]}",
        "\n".join(lines).strip("\n"),
        *_transcript(rule),
        *_messages_of(rule),
    ]
    return "\n\n".join(parts) + "\n"


def _transcript(rule: Rule) -> list[str]:
    """A real answer with this cause first, as `unstuck report` draws it."""
    for name in sorted(
        CORPUS, key=lambda name: (CORPUS[name]["rules"][0] != rule.name, "sample" not in CORPUS[name], name)
    ):
        if rule.name in CORPUS[name]["rules"] and (CASES / f"{name}.json.gz").exists():
            answer = answer_of(name, Screen(width=COLUMNS), rule.name)
            if answer:
                told = f"What `unstuck run` said about `tests/faults/faulty/{name}.py`:"
                return ["## What it looks like", told, f"```text\n{answer}\n```"]
    return []


def answer_of(name: str, screen: Screen, rule: str) -> str:
    """What was said about a script of the corpus, without what else was found; empty if this rule was not first."""
    case = case_from(json.loads(gzip.decompress((CASES / f"{name}.json.gz").read_bytes())), name)
    case = replace(
        case, cwd=f"{RECORDED_AT}/tests/faults/faulty", probes_off=()
    )  # where a person would have started it
    first = diagnose(case).findings[:1]
    if [finding.rule for finding in first] != [rule]:
        return ""
    read = code_excerpt._read
    # The sources are those of this checkout; their folder has the name it had when the Case was recorded.
    code_excerpt._read = lambda path: read(path.replace(RECORDED_AT, str(ROOT), 1))
    try:
        answer = terminal.render(case, Diagnosis(findings=first), screen, live=False).strip("\n")
    finally:
        code_excerpt._read = read
    return answer.partition("\n\n  What could not be seen")[0]  # which is about the machine, not about the cause


def _messages_of(rule: Rule) -> list[str]:
    titles = [
        f"- [`` {message.title.partition(' · ')[0]} ``](../messages/{message.name}.md)"
        for message in MESSAGES
        if rule.name in dict(message.can_be)
    ]
    return ["## Messages it can be behind", "\n".join(titles)] if titles else []


def rule_index() -> str:
    families = dict.fromkeys(rule.family for rule in RULES)
    parts = ["# The rules", "", "One rule is one possible cause. `unstuck explain NAME` shows the same page.", ""]
    for family in families:
        parts += [f"## {family}: {FAMILIES[family]}", ""]
        parts += [f"- [{r.name}]({r.name}.md): {r.summary}" for r in RULES if r.family == family]
        parts.append("")
    return "\n".join(parts)


def message_page(message: Message) -> str:
    parts = [
        f"# {message.name}",
        "\n".join(f"    {title}" for title in message.title.split(" · ")),
        textwrap.fill(message.means, 120),
        "## Possible causes",
        "\n".join(f"- {_linked(rule)}: {tell}" for rule, tell in message.can_be),
        "## What to run",
        "\n".join(["```sh", *message.run, "```"]),
        "`unstuck explain RULE` says more about a cause; [the rules](../rules/README.md) have a page each.",
    ]
    return "\n\n".join(parts) + "\n"


def _linked(rule: str) -> str:
    return f"[**{rule}**](../rules/{rule}.md)" if rule in NAMES else f"**{rule}**"


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
