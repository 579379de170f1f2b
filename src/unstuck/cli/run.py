"""Run a training and say why it is stuck.

  unstuck run [options] train.py [arguments]
  unstuck run [options] -m package.module [arguments]
  unstuck run [options] -- torchrun --nproc-per-node 2 train.py

The script runs as `python train.py` would: same arguments, folder, standard
input, terminal and exit code. unstuck writes to standard error, and only when
there is something to say.
"""

from __future__ import annotations

import os
import sys

from unstuck.cli.options import OPTIONS, Given
from unstuck.cli.which import which
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

NOT_PYTHON = {
    ".sh": "unstuck run -- bash {script}",
    ".ipynb": "jupyter nbconvert --to script {script}",
    ".yaml": "",
    ".yml": "",
    ".json": "",
    ".txt": "",
}
_CUTS_US_OFF = {"E": "ignores PYTHONPATH", "I": "isolates it", "S": "skips site"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    import argparse

    from unstuck.cli.parser import formatter

    parser = subparsers.add_parser(
        "run",
        help="run a training and say why it is stuck",
        description=__doc__,
        epilog="Every option can also be set in the environment (UNSTUCK_ON_HANG=stop) or in\n"
        '[tool.unstuck] of pyproject.toml (on-hang = "stop").',
        formatter_class=formatter,
        usage="unstuck run [options] train.py [arguments]",
    )
    for option in OPTIONS:
        option.add_to(parser)
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="train.py …", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace | Given) -> int:
    from unstuck.cli.settings import Settings
    from unstuck.report import store
    from unstuck.supervise import Options
    from unstuck.supervise.supervisor import supervise

    settings = Settings()
    values = {option.name: option.resolve(settings, getattr(args, option.name)) for option in OPTIONS}
    command = build_command(args.module, list(args.command), values.pop("python"))
    if values["report"] is not None:
        from unstuck.report.json_report import check_report_path

        values["report"] = _absolute(values["report"])
        check_report_path(values["report"])
    for note in settings.notes:
        print(f"unstuck: {note}", file=sys.stderr)
    return supervise(command, Options(**values), store.create())


def build_command(module: list[str] | None, words: list[str], python: str | None) -> list[str]:
    """The command line to start; refuses early what could only fail in a confusing way later."""
    from unstuck.cli.interpreter import choose_python

    if module:
        return [choose_python(python)[0], "-m", *module]
    if words and words[0] == "--":
        return _foreign(words[1:])
    if not words:
        raise UsageError("no script given", next_command="unstuck run train.py")
    script = words[0]
    if not os.path.exists(script) and not script.endswith(".py") and which(script):
        return _foreign(words)
    check_script(script)
    return [choose_python(python)[0], *words]


def check_script(script: str) -> None:
    if script.startswith("-"):
        raise UsageError(f"unknown option {script}", next_command="unstuck run --help")
    if not os.path.exists(script):
        near = _near(script)
        raise UsageError(
            f"no such script: {script}",
            cause=f"there is no such file from {_here()}",
            next_command=f"unstuck run {near}" if near else "ls *.py",
        )
    if os.path.isdir(script):
        if os.path.exists(os.path.join(script, "__main__.py")):
            return
        inside = os.path.join(script, "train.py")
        raise UsageError(
            f"{script} is a folder, not a script",
            cause="Python runs a folder only if it has a __main__.py",
            next_command=f"unstuck run {inside}" if os.path.exists(inside) else f"ls {script}",
        )
    ending = os.path.splitext(script)[1].lower()
    if ending in NOT_PYTHON:
        raise UsageError(
            f"{script} is not a Python script",
            cause=f"files of type {ending} are not run by Python",
            next_command=NOT_PYTHON[ending].format(script=script) or "unstuck run train.py",
        )
    if ending == ".pyc" or not os.path.isfile(script):
        return  # compiled; or a pipe, of which nothing may be taken away
    try:
        with open(script, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise UsageError(f"cannot read {script}: {error.strerror}", next_command=f"ls -l {script}") from error
    if b"\0" in head and not head.startswith(b"PK"):
        raise UsageError(
            f"{script} is not a Python script",
            cause="it is a binary file",
            next_command=f"unstuck run -- ./{script}" if os.access(script, os.X_OK) else "unstuck run train.py",
        )


def _foreign(words: list[str]) -> list[str]:
    """A command of the user's own, such as torchrun; Python below it is recorded all the same."""
    if not words:
        raise UsageError("nothing follows --", next_command="unstuck run -- torchrun train.py")
    if which(words[0]) is None:
        raise UsageError(f"no such command: {words[0]}", cause="it is not on PATH", next_command="unstuck env")
    if os.path.basename(words[0]).rstrip("0123456789.") == "python":
        for word, letter in _flags(words[1:]):
            if letter in _CUTS_US_OFF:
                raise UsageError(
                    f"python {word} cannot be recorded: it {_CUTS_US_OFF[letter]}, which is how unstuck gets in",
                    cause=f"the flag -{letter} on the command line",
                    next_command=f"unstuck run -- {words[0]} " + " ".join(w for w in words[1:] if w != word),
                )
    return words


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    """The interpreter's own one-letter flags, each with the word it stands in; -X and -W take a value."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            return
        if word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], 1):
            if letter in "cm":
                return
            yield word, letter
            if letter in "XW":
                if place == len(word) - 1:
                    next(rest, None)
                break


def _near(script: str) -> str:
    import difflib

    folder, name = os.path.split(script)
    try:
        names = [entry for entry in os.listdir(folder or ".") if entry.endswith(".py")]
    except OSError:
        return ""
    match = difflib.get_close_matches(name, names, 1)
    return os.path.join(folder, match[0]) if match else ""


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "here (the working directory is gone)"


def _absolute(report: str) -> str:
    try:
        return os.path.abspath(report)
    except OSError:
        raise UsageError(
            f"cannot write the report to {report}",
            cause="the working directory is gone",
            next_command=f"cd / && unstuck run --report /tmp/{os.path.basename(report)} ...",
        ) from None
