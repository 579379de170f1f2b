"""A subcommand's parser, its help taken from the docstring of its module."""

from __future__ import annotations

import argparse
import os
import sys


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
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], module_doc: str | None, name: str
) -> argparse.ArgumentParser:
    page = (module_doc or "").strip()
    return subparsers.add_parser(
        name,
        help=page.partition("\n")[0],
        description=page,
        formatter_class=formatter,
    )
