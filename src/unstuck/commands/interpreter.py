"""Which Python a training is started with: the person's own, so that unstuck may live in another environment."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from unstuck.errors import UsageError

# Reads what pip wrote down: importing torch would take seconds, and may be the very thing that hangs.
_QUESTION = """
import json, platform, sys
try:
    from importlib.metadata import version
    torch = version("torch")
except Exception:
    torch = None
print(json.dumps({"version": platform.python_version(), "executable": sys.executable, "torch": torch}))
"""


@dataclass(frozen=True)
class Answer:
    """What an interpreter says about itself."""

    version: str = ""
    executable: str = ""
    torch: str | None = None
    trouble: str = ""
    """Why it did not answer."""


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
        on_path = shutil.which(name)
        if on_path:
            return on_path, f"the first {name} on PATH"
    return sys.executable, "unstuck's own, for there is no other on PATH"


def ask_python(python: str, limit: float = 20.0) -> Answer:
    """Start the interpreter and let it say what it is."""
    import json

    try:
        done = subprocess.run(
            [python, "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            return Answer(trouble=f"it ended with status {done.returncode}: {last[0]}")
        # A sitecustomize may print too: the answer is the last line.
        said = json.loads(done.stdout.strip().splitlines()[-1])
        return Answer(said["version"], said["executable"], said["torch"])
    except subprocess.TimeoutExpired:
        return Answer(trouble=f"it did not answer within {limit:g} s")
    except OSError as error:
        return Answer(trouble=error.strerror or str(error))
    except (ValueError, IndexError, KeyError):
        return Answer(trouble="its answer makes no sense")


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
    found = _python_in(path) or shutil.which(path)
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
    return shutil.which(os.path.join(folder, "bin", "python"))


def _has_torch() -> bool:
    try:
        return importlib.util.find_spec("torch") is not None
    except (ImportError, ValueError):
        return False
