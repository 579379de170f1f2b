"""The pages of the rules as text: one rule in full, or all of them in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unstuck.report.page import Page
from unstuck.rules.rule import HEADINGS, Rule

FAMILIES = {
    "hang": "nothing moves",
    "loop": "it never ends",
    "death": "it died",
    "pace": "it crawls",
    "numerics": "the numbers broke",
    "learning": "it does not learn",
    "data": "the data",
    "ranks": "several ranks",
}


def show_rule(page: Page, rule: Rule) -> None:
    first, _, body = rule.page.partition("\n")
    family = FAMILIES.get(rule.family, "")
    page.line((rule.name, "bold cyan"), (f"  {rule.family}: {family}" if family else f"  {rule.family}", "dim"))
    page.line(rule.summary if first.startswith(rule.name) else first, indent=2)
    after_heading = False
    for heading, block in _blocks(body):
        if not after_heading:
            page.blank()
        after_heading = heading
        if heading:
            page.line((block, "bold"), indent=2)
        elif _is_verbatim(block):
            for line in block.splitlines():
                page.line((line, "dim"), indent=4)
        else:
            for item in _items(block):
                lead = f"{page.glyph('bullet')} " if item.startswith(("- ", "* ")) else ""
                page.line(item[2:] if lead else item, lead=(lead, "dim"), indent=4)


def list_rules(page: Page, rules: Sequence[Rule]) -> None:
    widest = max((len(rule.name) for rule in rules), default=0)
    for family in dict.fromkeys(rule.family for rule in rules):
        page.blank()
        page.line((family, "bold"), (f"  {FAMILIES.get(family, '')}", "dim"))
        for rule in rules:
            if rule.family == family:
                page.line(rule.summary, lead=(rule.name.ljust(widest + 2), "cyan"), indent=2)
    page.blank()
    page.line("unstuck explain RULE shows a page about each.")


def _blocks(body: str) -> Iterator[tuple[bool, str]]:
    """Headings and paragraphs, whether blank lines part them or not."""
    held: list[str] = []
    for line in [*body.splitlines(), ""]:
        bare = line.strip().strip("#*=:").strip()
        if bare in HEADINGS or not bare:
            if held:
                yield False, "\n".join(held)
                held = []
            if bare:
                yield True, bare
        else:
            held.append(line)


def _is_verbatim(block: str) -> bool:
    """Code and tables keep their lines; prose under a heading may be indented too, so only deep indents count."""
    lines = block.splitlines()
    return all(line.startswith(" " * 8) or line.lstrip().startswith(("|", ">>>", "+", "$ ")) for line in lines)


def _items(block: str) -> Iterator[str]:
    """Prose joined to one line; each list item by itself."""
    held = ""
    for line in block.splitlines():
        words = line.strip()
        if words.startswith(("- ", "* ")) and held:
            yield held
            held = words
        else:
            held = f"{held} {words}".strip()
    if held:
        yield held
