"""The command of `unstuck scan` and `unstuck tune`: a Python script or module, run by a Python that can be entered."""

from __future__ import annotations

import argparse
import sys

from unstuck.errors import UsageError

OLDEST = (3, 10)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", metavar="PY", help="interpreter to run the script with (see `unstuck env`)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="train.py …", help=argparse.SUPPRESS)


def script_command(args: argparse.Namespace, goal: str, python: str | None) -> list[str]:
    """`goal`: the subcommand."""
    from unstuck.cli.run import build_command

    if not sys.platform.startswith("linux"):
        raise UsageError(f"unstuck {goal} needs Linux", next_command=f"unstuck.{goal}(…) in a script")
    words = list(args.command)
    if not args.module and not words:
        raise UsageError("no script given", next_command=f"unstuck {goal} train.py")
    if words[:1] == ["--"]:
        raise UsageError(
            f"{goal} starts a Python script, not another command",
            cause="with several ranks each has a loader of its own; one of them is enough",
            next_command=f"unstuck {goal} train.py",
        )
    try:
        command = build_command(args.module, words, python)
    except UsageError as error:
        error.next_command = error.next_command.replace("unstuck run", f"unstuck {goal}")
        raise
    _check(command[0], goal)
    return command


def _check(python: str, goal: str) -> None:
    """One that is too old would run the whole training."""
    from unstuck.cli.ask import ask_python

    version = ask_python(python).version if "python" in python.rpartition("/")[2] else ""
    if version and tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise UsageError(
            f"cannot {goal} with Python {version}",
            cause=f"{python} is older than 3.10",
            next_command=f"unstuck {goal} --python PY train.py    (another interpreter, with torch)",
        )
