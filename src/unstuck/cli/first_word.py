"""What is said where the first word is not a command: the command that was probably meant, ready to paste."""

from __future__ import annotations

import os
import sys

from unstuck.cli import options
from unstuck.cli.interpreter import which
from unstuck.cli.script_command import likely_script
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_FLAGS = frozenset(("-h", "--help", "--version", "-v", "--verbose"))


def next_step() -> str:
    """For somebody who typed `unstuck` alone."""
    if not sys.platform.startswith("linux"):
        return "unstuck explain"
    script = likely_script()
    return f"unstuck run {script}" if script else "unstuck demo"


def check(words: Sequence[str], commands: Sequence[str]) -> None:
    """Refuse words that begin with no command, unless they are for the parser to read."""
    rest = [*words]
    while rest and rest[0] in ("-v", "--verbose"):
        del rest[0]
    if not rest:
        raise UsageError(f"no command given (there are: {', '.join(commands)})", next_command=next_step())
    if rest[0] in commands or rest[0] in OWN_FLAGS:
        return
    what, cause, command = _meant(rest[0], rest, commands)
    raise UsageError(what, cause=cause, next_command=command)


def _meant(first: str, words: list[str], commands: Sequence[str]) -> tuple[str, str, str]:
    """What failed, likely why, and the command to paste."""
    import difflib

    near = difflib.get_close_matches(first.lower(), commands, 1)
    none = f"no command is called {first}"
    if first == "-m" or first.partition("=")[0] in options.BY_WORD:
        return f"{first} is an option of `unstuck run`", "a command comes first", _line("run", *words)
    if first.startswith("-"):
        return f"unstuck has no option {first}", "options come after the command", "unstuck --help"
    if first.endswith(".py") or os.path.isfile(first):
        return f"{first} is a script, not a command of unstuck", "a command comes first", _line("run", *words)
    if first.isdigit():
        return none, "it looks like a process", _line("attach", *words)
    if near:
        return none, f"did you mean {near[0]}?", _line(near[0], *words[1:])
    if which(first):
        if os.path.basename(first).rstrip("0123456789.") == "python" and len(words) > 1:
            return none, "unstuck runs a script with your Python by itself", _line("run", *words[1:])
        return none, "it is a program, which unstuck can run", _line("run", "--", *words)
    from unstuck.rules import RULES

    if " " in first or any(rule.name == first for rule in RULES):
        return f"{none:.100}", "it looks like an error message or a rule", _line("explain", *words)
    return f"{none} (there are: {', '.join(commands)})", "", "unstuck --help"


def _line(*words: str) -> str:
    import shlex

    return f"unstuck {shlex.join(words)}"
