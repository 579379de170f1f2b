"""What a message is: words seen on a terminal, what they mean, which rules they can be, and what to run; and how it is
read from a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LAST_RESORT = " (last resort)"
_SAME_CAUSES = "as of "
_TO_RUN = "unstuck run train.py"


@dataclass(frozen=True)
class Message:
    """One thing that people see and paste. A message is not a cause: it can have several."""

    name: str
    title: str  # the message itself, with … for what differs from run to run
    patterns: tuple[re.Pattern[str], ...]
    """One is enough. They are tried on the text as `search.plain` leaves it: in lower case, each line after a \\n."""
    means: str
    can_be: tuple[tuple[str, str], ...]  # a rule, and the one observation that distinguishes it from the others
    run: tuple[str, ...]
    last_resort: bool = False  # counts only where no other message fits


def says(*wordings: str) -> tuple[re.Pattern[str], ...]:
    """Regular expressions, in lower case. A blank is any white space, so a line broken by a terminal is found too.

    Each begins with plain letters, and what repeats is bounded: a log of megabytes takes milliseconds."""
    return tuple(re.compile(wording.replace(" ", r"\s+")) for wording in wordings)


def shell_says(*words: str) -> tuple[re.Pattern[str], ...]:
    """What a shell prints when a signal ended a command: alone on its line, after a job number or a place in a script.

    `Killed`, `Aborted (core dumped)`, `[1]+  Killed     python train.py`, `zsh: killed     python train.py`,
    `run.sh: line 2: 4711 Bus error               (core dumped) python train.py`."""
    one = f"(?:{'|'.join(words)})"
    alone = tuple(re.compile(rf"\n{word}(?:: \d+)?(?: +\(core dumped\))?[ \r]*\n") for word in words)
    return (
        *alone,
        re.compile(rf": line \d+: +\d+ +{one}"),
        re.compile(rf"\n\[\d+\] {{0,4}}[+-]? +(?:\d+ +)?{one}"),
        re.compile(rf"\nzsh: {one}"),
    )


def read(text: str) -> tuple[Message, ...]:
    """Blocks of lines: name and title, the meaning, then a sign before each pattern, rule and command."""
    known: dict[str, Message] = {}
    for block in text.split("\n\n"):
        first, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if not first:
            continue
        name, _, title = first.partition(": ")
        signed = {sign: [line[2:] for line in lines if line.startswith(f"{sign} ")] for sign in "~!?$"}
        causes: list[tuple[str, str]] = []
        for cause in signed["?"]:
            rule, _, tell = cause.partition(": ")
            same = rule.removeprefix(_SAME_CAUSES)
            causes += [(rule, tell)] if rule == same else known[same].can_be
        message = Message(
            name=name.removesuffix(_LAST_RESORT),
            title=title,
            patterns=(*(shell_says(*signed["!"]) if signed["!"] else ()), *says(*signed["~"])),
            means=" ".join(line for line in lines if line[:2] not in ("~ ", "! ", "? ", "$ ")),
            can_be=tuple(causes),
            run=tuple(signed["$"] or [_TO_RUN]),
            last_resort=name.endswith(_LAST_RESORT),
        )
        known[message.name] = message
    return tuple(known.values())
