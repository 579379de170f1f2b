"""Which Python a training is started with: the person's own, so that unstuck may live in another environment."""

from __future__ import annotations

import os
import sys

from unstuck.cli.which import which
from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def choose_python(explicit: str | None) -> tuple[str, str]:
    """The interpreter's path, and why it is this one."""
    if explicit:
        return _named(explicit), "you asked for it (--python)"
    if runs_as_module(sys.orig_argv):
        return sys.executable, "unstuck was started with it (python -m unstuck)"
    for variable, what in (("VIRTUAL_ENV", "virtual environment"), ("CONDA_PREFIX", "conda environment")):
        found = _python_in(os.environ.get(variable, ""))
        if found:
            return found, f"the active {what} ({variable})"
    if sys.executable and _has_torch():
        return sys.executable, "unstuck's own, and it has torch"
    for name in ("python", "python3"):
        on_path = which(name)
        if on_path:
            return on_path, f"the first {name} on PATH"
    return sys.executable, "unstuck's own, for there is no other on PATH"


def runs_as_module(command: Sequence[str]) -> bool:
    """Is this interpreter running `-m unstuck`? Only its own options count, not what comes after the program."""
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return False
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(words, None)
            continue
        cluster = word[1:]
        for place, letter in enumerate(cluster):
            if letter not in "mcXW":
                continue
            value = cluster[place + 1 :] or next(words, "")
            if letter == "m":
                return value == "unstuck"
            if letter == "c":
                return False
            break
    return False


def _named(python: str) -> str:
    path = os.path.expanduser(python)
    found = _python_in(path) or which(path)
    if found is None:
        what = "is not a program that can be run" if os.path.exists(path) else "does not exist"
        if os.sep not in path:
            what = "is not on PATH"
        raise UsageError(
            f"cannot use --python {python}",
            cause=f"{python} {what}",
            next_command="unstuck env    (shows which Python is used without it)",
        )
    return os.path.abspath(found)


def _python_in(folder: str) -> str | None:
    """The interpreter of an environment's folder."""
    if not folder or not os.path.isdir(folder):
        return None
    return which(os.path.join(folder, "bin", "python"))


def _has_torch() -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec("torch") is not None
    except (ImportError, ValueError):
        return False
