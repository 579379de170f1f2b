"""Explain a rule or an error message.

  unstuck explain                         list all rules and messages
  unstuck explain file-lock-held          the page of a rule
  unstuck explain "Too many open files"   what an error message means
  unstuck explain - < train.log           find the messages in a log

A page about a message says what it means, which causes it can have, how to
tell them apart, and what to run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from unstuck.cli import parser as parsers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.report.page import Page

UNKNOWN = 1
_MAX_NAME = 100  # characters; anything longer is a message
_MAX_LOG = 16 << 20  # bytes; of a longer log the end is read, which says why the run ended


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "explain")
    parser.add_argument(
        "words", nargs="*", metavar="RULE|MESSAGE", help="name of a rule, an error message, or - for standard input"
    )


def run(args: argparse.Namespace) -> int:
    from unstuck.explain import MESSAGES
    from unstuck.explain.manual import list_messages, list_rules
    from unstuck.report.page import Page
    from unstuck.report.screen import Screen
    from unstuck.rules import RULES

    out = sys.stdout
    page = Page(Screen.of(out))
    status = 0
    if not args.words:
        list_rules(page, RULES)
        list_messages(page, MESSAGES)
        page.next_command(f"unstuck explain {RULES[0].name}")
    else:
        query = _standard_input() if args.words == ["-"] else " ".join(args.words).strip()
        status = _explain(page, query)
    out.write(f"\n{page}")
    return status


def _explain(page: Page, query: str) -> int:
    from unstuck.cli.first_word import next_step
    from unstuck.errors import UsageError
    from unstuck.explain import MESSAGES, message_named, messages_of
    from unstuck.explain.manual import show_found, show_message, show_rule, show_rule_by_messages, show_unknown
    from unstuck.explain.search import find, nearest
    from unstuck.rules import RULES, rule_named

    name = "-".join(query.lower().replace("_", " ").replace("-", " ").split()) if len(query) < _MAX_NAME else ""
    found = find(query)
    one_word = len(query) < _MAX_NAME and len(query.split()) <= 1
    if found and not one_word:  # “Too many open files” is a message; too-many-open-files is a rule
        show_found(page, found, of_many_lines="\n" in query)
    elif rule := rule_named(name):
        show_rule(page, rule)
        page.next_command(next_step())
    elif message := message_named(name):
        show_message(page, message)
    elif messages := messages_of(name):
        show_rule_by_messages(page, name, messages)
    elif found:
        show_found(page, found, of_many_lines=False)
    elif one_word:  # a name, and not quite right
        near = _near(name, [rule.name for rule in RULES]) or _near(name, [message.name for message in MESSAGES])
        raise UsageError(
            f"no rule is called {query}, and no known message contains it" if query else "there is nothing to explain",
            cause=f"did you mean {' or '.join(near)}?" if near else "",
            next_command=f"unstuck explain {near[0]}" if near else "unstuck explain",
        )
    else:
        show_unknown(page, nearest(query))
        return UNKNOWN
    return 0


def _standard_input() -> str:
    if sys.stdin is None:  # there is none after `<&-`
        return ""
    if sys.stdin.isatty():
        print("unstuck: paste the message, then press Ctrl-D on a line of its own", file=sys.stderr)
    text, long = b"", False
    while piece := sys.stdin.buffer.read(_MAX_LOG):
        long = long or len(text) + len(piece) > _MAX_LOG
        text = (text + piece)[-_MAX_LOG:]
    if long:
        print(f"unstuck: only the last {_MAX_LOG >> 20} MB of this text are read", file=sys.stderr)
    return text.decode(errors="replace").strip()


def _near(name: str, names: Sequence[str]) -> list[str]:
    import difflib

    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return near + [other for other in names if name and name in other and other not in near][:3]
