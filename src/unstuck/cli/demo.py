"""Watch a small broken training being explained.

The scripts come with unstuck. The training is stopped as soon as the cause is
known. Without NAME: stuck-sample.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unstuck.cli import parser as parsers
from unstuck.platforms import refuse_elsewhere

DEFAULT = "stuck-sample"
FOLDER = Path(__file__).resolve().parent.parent / "demos"

STOPPED = 3  # exit code of `run` when it stopped the training, which is how a demo should end


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = parsers.add(subparsers, __doc__, "demo")
    parser.add_argument("name", nargs="?", metavar="NAME", default=DEFAULT, help="which demo (see --list)")
    parser.add_argument("--list", action="store_true", help="list the demos")
    parser.add_argument("--python", metavar="PY", help="interpreter to run the script with (see `unstuck env`)")


def run(args: argparse.Namespace) -> int:
    from unstuck.cli import main

    demos = available()
    if args.list:
        widest = max(map(len, demos))
        for name, path in demos.items():
            print(f"{name.ljust(widest)}  {summary(path)}")
        print(f"\n  next: unstuck demo {list(demos)[1]}")
        return 0
    script = demos.get(args.name)
    if script is None:
        from unstuck.errors import UsageError

        raise UsageError(
            f"no demo is called {args.name} (there are: {', '.join(demos)})",
            next_command="unstuck demo --list",
        )
    refuse_elsewhere("demo")
    python = _python_with_torch(args.python)
    command = f"unstuck run --stop-on error {script.name}"
    print(f"unstuck demo {args.name}: {summary(script)} ({command})", file=sys.stderr)
    status = main(["run", "--stop-on", "error", "--python", python, str(script)])
    if status == 0:
        print("unstuck: the demo ended by itself; it should have been stopped", file=sys.stderr)
        return 1
    return 0 if status == STOPPED else status


def available() -> dict[str, Path]:
    """Demos by name, the default first."""
    demos = {path.stem.replace("_", "-"): path for path in sorted(FOLDER.glob("[!_]*.py"))}
    return dict(sorted(demos.items(), key=lambda item: item[0] != DEFAULT))


def summary(script: Path) -> str:
    """The first line of the script's docstring."""
    return script.read_text(encoding="utf-8").partition("\n")[0].strip('"')


def _python_with_torch(explicit: str | None) -> str:
    from unstuck.cli.interpreter import ask_python, choose_python
    from unstuck.errors import UsageError

    python, why = choose_python(explicit)
    info = ask_python(python)
    if info.trouble:
        raise UsageError(f"cannot use {python} ({why})", cause=info.trouble, next_command="unstuck env")
    if info.torch is None:
        raise UsageError(
            "the demo needs torch",
            cause=f"{python} ({why}) does not have it; --python PY names another one",
            next_command=f"{python} -m pip install torch",
        )
    return python
