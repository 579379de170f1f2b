"""Finds the messages in a pasted text, or those nearest to it. Pure: text in, messages out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from unstuck.explain import MESSAGES
from unstuck.explain.message import Message

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_TYPED = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "\u00a0": " "})
_DIGITS = str.maketrans("", "", "0123456789")
_MIN_SCORE = 0.4  # two words that five messages each have, or one that two have: less is chance
_WORDS = re.compile(r"[a-z_]{4,40}")


@dataclass(frozen=True)
class Found:
    message: Message
    line: str
    """The line of the text that has it."""


def find(text: str, messages: Sequence[Message] = MESSAGES) -> list[Found]:
    """All messages the text has, in the order of the table: the nearest to the cause first."""
    content = _once(plain(text))
    lowered = content.lower()
    if len(lowered) != len(content):  # a letter became two: positions in one are not positions in the other
        content = lowered
    found = [
        Found(message, _line(content, position))
        for message in messages
        if (position := _position(lowered, message.patterns)) is not None
    ]
    return [one for one in found if not one.message.last_resort] or found


def plain(text: str) -> str:
    """As the patterns want it, but for capitals: no colours, plain quotes, a line break before and after each line."""
    text = _ESCAPES.sub("", text).translate(_TYPED).replace("\r\n", "\n").replace("\r", "\n")
    return f"\n{text.strip()}\n"


def nearest(text: str, messages: Sequence[Message] = MESSAGES, most: int = 3) -> list[Message]:
    """Messages that share rare words with the text; none if they share only common ones."""
    own = {message.name: set(_WORDS.findall(_wording(message))) for message in messages}
    shares = Counter(word for words in own.values() for word in words)
    words_asked = set(_WORDS.findall(text.lower()))
    score = {name: sum(1 / shares[word] for word in words & words_asked) for name, words in own.items()}
    near = sorted((m for m in messages if score[m.name] >= _MIN_SCORE), key=lambda message: -score[message.name])
    return near[:most]


def _once(content: str) -> str:
    """Lines that differ in digits only, once: a log of an hour becomes a page."""
    skeletons = content.translate(_DIGITS).split("\n")
    once = dict(zip(skeletons, content.split("\n"), strict=True))
    return "\n" + "\n".join(once.values()) + "\n"


def _wording(message: Message) -> str:
    return " ".join((message.title, message.means, *(tell for _, tell in message.can_be))).lower()


def _position(lowered: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    for pattern in patterns:
        match = pattern.search(lowered)
        if match:
            return match.start() + (match[0][0] == "\n")
    return None


def _line(content: str, position: int) -> str:
    return content[content.rfind("\n", 0, position) + 1 : content.find("\n", position)].strip()
