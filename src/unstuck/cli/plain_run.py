"""Reads an ordinary `run` command line without argparse, which takes longer to load than all of the supervisor.

Only what is plainly right is read here; for help, mistakes and anything unusual the answer is None, and argparse
reads the same words again and says what is wrong.
"""

from __future__ import annotations

VALUES = {
    "--on-hang": "on_hang",
    "--stop-on": "stop_on",
    "--stall-after": "stall_after",
    "--report": "report",
    "--fail-on": "fail_on",
    "--python": "python",
    "--grace": "grace",
}
SECONDS = ("stall_after", "grace")
CHOICES = {"on_hang": ("report", "stop"), "stop_on": ("error", "warning"), "fail_on": ("error", "warning")}


class Words:
    """What argparse would have given."""

    def __init__(self) -> None:
        self.on_hang: str | None = None
        self.stop_on: str | None = None
        self.stall_after: float | None = None
        self.report: str | None = None
        self.fail_on: str | None = None
        self.python: str | None = None
        self.grace: float | None = None
        self.detach = False
        self.trace_nan = False
        self.verbose = False
        self.module: list[str] | None = None
        self.command: list[str] = []


def read(words: list[str]) -> Words | None:
    """`words` as after `unstuck`: run [options] script [arguments]."""
    if not words or words[0] != "run":
        return None
    found, rest = Words(), words[1:]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            found.command = [word, *rest]
            return found
        if word == "--detach":
            found.detach = True
        elif word == "--trace-nan":
            found.trace_nan = True
        elif word in ("-v", "--verbose"):
            found.verbose = True
        elif word == "-m" and rest:
            found.module = rest
            return found
        elif word == "--" and rest:
            found.command = [word, *rest]
            return found
        elif not _value(found, word, rest):
            return None
    return None


def _value(found: Words, word: str, rest: list[str]) -> bool:
    """Take one option with its value; False if it is not plainly right."""
    option, equals, value = word.partition("=")
    name = VALUES.get(option)
    if name is None or not (equals or rest):
        return False
    if not equals:
        value = rest.pop(0)
    if not value or value.startswith("-") or value not in CHOICES.get(name, (value,)):
        return False
    if name not in SECONDS:
        setattr(found, name, value)
        return True
    try:
        seconds = float(value)
    except ValueError:
        return False
    setattr(found, name, seconds)
    return 0 < seconds < 1e7
