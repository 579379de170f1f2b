"""What `unstuck explain` shows: the page of a rule, the page of a message, and the lists of them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unstuck.explain.message import Message
from unstuck.explain.search import Found
from unstuck.families import FAMILIES
from unstuck.report.page import Page
from unstuck.rules.rule import HEADINGS, Rule

MAX_OTHERS = 4  # messages named after the first one that a text has


def show_rule(page: Page, rule: Rule) -> None:
    first, _, body = rule.page.partition("\n")
    page.line((rule.name, "bold cyan"), (f"  {rule.family}: {FAMILIES[rule.family]}", "dim"))
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
    column = max(len(rule.name) for rule in rules) + 2
    for family in dict.fromkeys(rule.family for rule in rules):
        page.heading(family, FAMILIES[family], indent=0)
        page.names(((rule.name, rule.summary) for rule in rules if rule.family == family), 2, column)
    page.blank()
    page.line("unstuck explain RULE shows the page of a rule.")


def show_found(page: Page, found: Sequence[Found], *, of_many_lines: bool) -> None:
    """The first in full, with the line that says it where there is more than that line; the others by name."""
    first, *others = found
    page.line((first.message.title, "bold cyan"))
    if of_many_lines:
        page.cut((f"{page.glyph('arrow')} ", "dim"), first.line, indent=2)
    _show(page, first.message)
    if others:
        page.heading("Also in this text")
        _list(page, [other.message for other in others[:MAX_OTHERS]], indent=4)


def show_message(page: Page, message: Message) -> None:
    page.line((message.title, "bold cyan"))
    _show(page, message)


def show_rule_by_messages(page: Page, rule: str, messages: Sequence[Message]) -> None:
    """A cause that has no rule yet: what the messages say about it."""
    page.line((rule, "bold cyan"))
    page.line("unstuck has no rule for this cause yet. It can be behind these messages:", indent=2)
    for message in messages:
        page.blank()
        page.line(message.title, lead=(f"{page.glyph('bullet')} ", "dim"), indent=2)
        page.line(dict(message.can_be)[rule], indent=4)


def show_unknown(page: Page, near: Sequence[Message]) -> None:
    page.line(("unstuck does not know this message", "bold"))
    page.line("None of the messages it knows matches, so it cannot say what this one means.", indent=2)
    if near:
        page.heading("Similar words, though perhaps another cause")
        _list(page, near, indent=4)
    _commands(page, ["unstuck run train.py   # run it under unstuck, and see what it finds", "unstuck explain"])


def list_messages(page: Page, messages: Sequence[Message]) -> None:
    page.heading("messages", "what you see on the terminal", indent=0)
    _list(page, messages, indent=2)
    page.blank()
    page.line('unstuck explain "the message" (or - for standard input) says what it means.')


def _show(page: Page, message: Message) -> None:
    page.blank()
    page.line(message.means, indent=2)
    page.heading("Possible causes")
    page.names(message.can_be, indent=4)
    _commands(page, message.run)


def _commands(page: Page, commands: Sequence[str]) -> None:
    page.heading("What to run")
    for command in commands:
        page.line(command, lead=("$ ", "dim"), indent=4)


def _list(page: Page, messages: Sequence[Message], indent: int) -> None:
    page.names(((message.name, message.title.partition(" · ")[0]) for message in messages), indent)


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
