"""A subcommand's parser, its help taken from the docstring of its module."""

from __future__ import annotations

import argparse
import os
import sys

from unstuck.cli.options import MAX_SECONDS
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line as every other error is said, with a command to paste."""

    def error(self, message: str) -> NoReturn:
        import difflib
        import re

        wrong = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        known = sorted(set(re.findall(r"--[a-z][a-z-]*", self.format_help())))
        near = difflib.get_close_matches(wrong[1], known, 1) if wrong else []
        cause = f"did you mean {near[0]}?" if near else ""
        raise UsageError(message, cause=cause, next_command=f"{self.prog} --help")


def formatter(prog: str) -> argparse.HelpFormatter:
    """argparse makes one for every argument, and without a width loads shutil and four compression libraries for it."""
    return argparse.RawDescriptionHelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    module_doc: str | None,
    name: str,
    *,
    starts_script: bool = False,
) -> argparse.ArgumentParser:
    page = (module_doc or "").strip()
    return subparsers.add_parser(
        name,
        help=page.partition("\n")[0].rstrip("."),
        description=page,
        formatter_class=formatter,
        usage=f"unstuck {name} [options] train.py [arguments]" if starts_script else None,
    )


def seconds(takes: str, example: str, most: float = MAX_SECONDS) -> Callable[[str], float]:
    """A type for an option that takes seconds; `takes` and `example` go into the error message."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 < value <= most:
            raise UsageError(
                f"{text!r} is not a number of seconds",
                cause=f"{takes} a number above 0, at most {most:,.0f}",
                next_command=example,
            )
        return value

    return read
