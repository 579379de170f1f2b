"""Run a small broken training and see it explained.

The scripts come with unstuck; the training is stopped once the cause is named. Without NAME: stuck-sample."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unstuck.cli import parser as parsers

DEFAULT = "stuck-sample"
FOLDER = Path(__file__).resolve().parent.parent / "demos"

STOPPED = 3
"""Exit status of `run` when it stopped the training, which is how a demo should end."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "demo")
    parser.add_argument("name", nargs="?", metavar="NAME", default=DEFAULT, help="which one (see --list)")
    parser.add_argument("--list", action="store_true", help="list the demos")
    parser.add_argument("--python", metavar="PY", help="the Python to use, as for run")


def run(args: argparse.Namespace) -> int:
    from unstuck.cli import main

    demos = available()
    if args.list:
        widest = max(map(len, demos))
        for name, path in demos.items():
            print(f"{name.ljust(widest)}  {summary(path)}")
        return 0
    script = demos.get(args.name)
    if script is None:
        from unstuck.errors import UsageError

        raise UsageError(
            f"there is no demo {args.name}",
            cause=f"these exist: {', '.join(demos)}",
            next_command="unstuck demo --list",
        )
    python = _python_with_torch(args.python)
    print(
        f"unstuck demo {args.name}: {summary(script)} It is started as `unstuck run --on-hang stop`.", file=sys.stderr
    )
    status = main(["run", "--on-hang", "stop", "--python", python, str(script)])
    if status == 0:
        print("unstuck: the demo ended by itself; it should have been stuck.", file=sys.stderr)
        return 1
    return 0 if status == STOPPED else status


def available() -> dict[str, Path]:
    """Demos by name, the default first."""
    found = {path.stem.replace("_", "-"): path for path in sorted(FOLDER.glob("[!_]*.py"))}
    return dict(sorted(found.items(), key=lambda item: item[0] != DEFAULT))


def summary(script: Path) -> str:
    """The first line of the script's docstring."""
    return script.read_text(encoding="utf-8").partition("\n")[0].strip('"')


def _python_with_torch(explicit: str | None) -> str:
    from unstuck.cli.ask import ask_python
    from unstuck.cli.interpreter import choose_python
    from unstuck.errors import UsageError

    python, why = choose_python(explicit)
    answer = ask_python(python)
    if answer.trouble:
        raise UsageError(f"cannot use {python} ({why})", cause=answer.trouble, next_command="unstuck env")
    if answer.torch is None:
        raise UsageError(
            "the demo needs torch",
            cause=f"{python} ({why}) has none",
            next_command=f"{python} -m pip install torch    (or name another Python: unstuck demo --python PY)",
        )
    return python
