"""The messages of `messages.txt`, which is both the one table and the pages."""

from __future__ import annotations

from pathlib import Path

from unstuck.explain.message import Message, read

MESSAGES: tuple[Message, ...] = read((Path(__file__).parent / "messages.txt").read_text(encoding="utf-8"))


def messages_of(rule: str) -> tuple[Message, ...]:
    """The messages that can be this rule."""
    return tuple(message for message in MESSAGES if any(rule == name for name, _ in message.can_be))


def message_named(name: str) -> Message | None:
    return next((message for message in MESSAGES if message.name == name), None)
