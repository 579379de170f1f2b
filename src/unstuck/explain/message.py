"""What a message is: words seen on a terminal, what they mean, which rules they can be, and what to run."""

from __future__ import annotations

import re
from dataclasses import dataclass


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
