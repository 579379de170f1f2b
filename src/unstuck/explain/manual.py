"""What `unstuck explain` shows: the page of a rule, the page of a message, and the lists of them all."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.explain.message import Message
from unstuck.explain.search import Found
from unstuck.families import FAMILIES
from unstuck.report.page import Page
from unstuck.rules.rule import HEADINGS, Rule

MAX_OTHERS = 4  # messages named after the first one that a text has


def show_rule(page: Page, rule: Rule) -> None:
    page.line((rule.name, "bold cyan"), (f"  {rule.family}: {FAMILIES[rule.family]}", "dim"))
    page.line(rule.summary, indent=2)
    _, *paragraphs = rule.page.split("\n\n")
    for paragraph in paragraphs:
        first, _, rest = paragraph.partition("\n")
        page.blank()
        if first in HEADINGS:
            page.line((first, "bold"), indent=2)
        page.line(" ".join((rest if first in HEADINGS else paragraph).split()), indent=4)


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
