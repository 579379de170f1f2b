"""Explain a rule: what it sees, why training stops, the fix, and when it is wrong.

Without RULE: all rules by family, each in a line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from unstuck.commands import parser as parsers


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "explain")
    parser.add_argument("words", nargs="*", metavar="RULE", help="name of a rule, as in a finding")


def run(args: argparse.Namespace) -> int:
    from unstuck.errors import UsageError
    from unstuck.render.manual import list_rules, show_rule
    from unstuck.render.page import Page
    from unstuck.render.status import wants_color, wants_unicode, width_of
    from unstuck.rules import RULES

    out = sys.stdout
    page = Page(color=wants_color(out), width=width_of(out), unicode=wants_unicode(out))
    asked = " ".join(args.words).strip()
    if not asked:
        list_rules(page, RULES)
    else:
        names = [rule.name for rule in RULES]
        name = "-".join(asked.lower().replace("_", " ").replace("-", " ").split())
        if name not in names:
            raise UsageError(
                f"there is no rule {asked}",
                cause=_nearest(name, names),
                next_command="unstuck explain    (lists all rules)",
            )
        show_rule(page, RULES[names.index(name)])
    out.write(f"\n{page}")
    return 0


def _nearest(name: str, names: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    near += [other for other in names if name in other and other not in near][:3]
    return f"did you mean {' or '.join(near)}?" if near else "no rule has a name like that"
