"""The command that starts a training: a script, a module, or a command of the user's own; refused early if it
could only fail in a confusing way later."""

from __future__ import annotations

import os

from unstuck.cli.interpreter import ask_python, choose_python, flags, which
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

NOT_PYTHON = {
    ".sh": "unstuck run -- bash {script}",
    ".ipynb": "jupyter nbconvert --to script {script}",
    ".yaml": "",
    ".yml": "",
    ".json": "",
    ".txt": "",
}
_CUTS_US_OFF = {"E": "ignores PYTHONPATH", "I": "isolates it", "S": "skips site"}


def add_arguments(parser: argparse.ArgumentParser, python: bool = True) -> None:
    """The script or module, and with `python` the interpreter: the same for run, scan and tune."""
    import argparse

    if python:
        parser.add_argument("--python", metavar="PY", help="interpreter to run the script with (see `unstuck env`)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="train.py …", help=argparse.SUPPRESS)


def script_command(args: argparse.Namespace, goal: str, python: str | None) -> list[str]:
    """For `scan` and `tune` (`goal`): a Python script or module, run by a Python that can be recorded."""
    words = list(args.command)
    if not args.module and not words:
        raise UsageError("no script given", next_command=f"unstuck {goal} {likely_script() or 'train.py'}")
    if words[:1] == ["--"]:
        raise UsageError(
            f"{goal} starts a Python script, not another command",
            cause="each rank has its own loader: one of them is enough",
            next_command=f"unstuck {goal} train.py",
        )
    try:
        command = build_command(args.module, words, python)
    except UsageError as error:
        error.next_command = error.next_command.replace("unstuck run", f"unstuck {goal}")
        raise
    if "python" in os.path.basename(command[0]) and (interpreter := ask_python(command[0])).too_old:
        raise UsageError(  # it would run the whole training
            f"cannot {goal} with Python {interpreter.version}",
            cause=f"{command[0]} is older than 3.10; --python PY names another interpreter, with torch",
            next_command="unstuck env",
        )
    return command


def build_command(module: list[str] | None, words: list[str], python: str | None) -> list[str]:
    """The command line to start; refuses early what could only fail in a confusing way later."""
    if module:
        return [choose_python(python)[0], "-m", *module]
    if words and words[0] == "--":
        return _foreign(words[1:])
    if not words:
        raise UsageError("no script given", next_command=f"unstuck run {likely_script() or 'train.py'}")
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
        for word, letter, _ in flags(words[1:]):
            if letter in _CUTS_US_OFF:
                raise UsageError(
                    f"python {word} cannot be recorded: it {_CUTS_US_OFF[letter]}, which is how unstuck gets in",
                    cause=f"the flag -{letter} on the command line",
                    next_command=f"unstuck run -- {words[0]} " + " ".join(w for w in words[1:] if w != word),
                )
    return words


def likely_script() -> str:
    """The script of this folder that people would call their training; empty if none stands out."""
    scripts = _scripts(".")
    usual = [name for name in ("train.py", "main.py") if name in scripts]
    return usual[0] if usual else scripts[0] if len(scripts) == 1 else ""


def _scripts(folder: str) -> list[str]:
    try:
        return [entry for entry in os.listdir(folder) if entry.endswith(".py") and entry != "setup.py"]
    except OSError:
        return []


def _near(script: str) -> str:
    import difflib

    folder, name = os.path.split(script)
    match = difflib.get_close_matches(name, _scripts(folder or "."), 1)
    return os.path.join(folder, match[0]) if match else ""


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "here (the working directory is gone)"
