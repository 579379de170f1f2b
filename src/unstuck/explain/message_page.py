"""The page of a message: what it means, which rules it can be, what to run. And the list of them all."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.explain.message import Message
from unstuck.explain.search import Found
from unstuck.report.page import Page

_MOST_OTHERS = 4


def show_found(page: Page, found: Sequence[Found], *, of_many_lines: bool) -> None:
    """The first in full, with the line that says it where there is more than that line; the others by name."""
    first, *others = found
    page.line((first.message.title, "bold cyan"))
    if of_many_lines:
        page.cut((f"{page.glyph('arrow')} ", "dim"), first.line, indent=2)
    _show(page, first.message)
    if others:
        page.blank()
        page.line(("Also in what you pasted", "bold"), indent=2)
        _list(page, [other.message for other in others[:_MOST_OTHERS]], indent=4)


def show_message(page: Page, message: Message) -> None:
    page.line((message.title, "bold cyan"))
    _show(page, message)


def show_rule_by_messages(page: Page, rule: str, messages: Sequence[Message]) -> None:
    """A rule that has no page of its own, by what tells it in the messages it can be behind."""
    page.line((rule, "bold cyan"))
    page.line("It has no page of its own. It can be behind these messages:", indent=2)
    for message in messages:
        page.blank()
        page.line(message.title, lead=(f"{page.glyph('bullet')} ", "dim"), indent=2)
        page.line(dict(message.can_be)[rule], indent=4)


def show_unknown(page: Page, near: Sequence[Message]) -> None:
    page.line(("unstuck does not know this message", "bold"))
    page.line("None of the messages it knows has these words, so it cannot say what they mean.", indent=2)
    if near:
        page.blank()
        page.line(("Nearest in words, which need not be nearest in cause", "bold"), indent=2)
        _list(page, near, indent=4)
    _commands(page, ["unstuck run train.py   # watch it happen, and be told what was seen", "unstuck explain"])


def list_messages(page: Page, messages: Sequence[Message]) -> None:
    page.blank()
    page.line(("messages", "bold"), ("  what you see on the terminal", "dim"))
    _list(page, messages, indent=2)
    page.blank()
    page.line('unstuck explain "the message" (or - for standard input) says what it can be.')


def _show(page: Page, message: Message) -> None:
    page.blank()
    page.line(message.means, indent=2)
    page.blank()
    page.line(("It can be", "bold"), indent=2)
    widest = max(len(rule) for rule, _ in message.can_be)
    for rule, tell in message.can_be:
        page.line(tell, lead=(rule.ljust(widest + 2), "cyan"), indent=4)
    _commands(page, message.run)


def _commands(page: Page, commands: Sequence[str]) -> None:
    page.blank()
    page.line(("What to run", "bold"), indent=2)
    for command in commands:
        page.line(command, lead=("$ ", "dim"), indent=4)


def _list(page: Page, messages: Sequence[Message], indent: int) -> None:
    widest = max(len(message.name) for message in messages)
    for message in messages:
        page.line(message.title.partition(" · ")[0], lead=(message.name.ljust(widest + 2), "cyan"), indent=indent)
