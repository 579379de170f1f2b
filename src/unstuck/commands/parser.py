"""A subcommand's parser, its help taken from the docstring of its module."""

from __future__ import annotations

import argparse


def add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], module_doc: str | None, name: str
) -> argparse.ArgumentParser:
    page = (module_doc or "").strip()
    return subparsers.add_parser(
        name,
        help=page.partition("\n")[0],
        description=page,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
