"""The Python that runs a training: the user's own, so that unstuck may live in another environment.

Light: `shutil.which` would load four compression libraries, and `subprocess` is needed only to ask."""

from __future__ import annotations

import os
import sys

from unstuck.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OLDEST_PYTHON = (3, 10)  # older ones cannot be recorded

# Reads what pip wrote down: importing torch would take seconds, and may be the very thing that hangs.
_QUESTION = """
import json, platform, sys
try:
    from importlib.metadata import version
    torch = version("torch")
except Exception:
    torch = None
print(json.dumps({"version": platform.python_version(), "torch": torch}))
"""


def choose_python(explicit: str | None) -> tuple[str, str]:
    """The interpreter's path, and why it is this one."""
    if explicit:
        return _named(explicit), "set by --python"
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
    return sys.executable, "unstuck's own: there is none on PATH"


def runs_as_module(command: Sequence[str]) -> bool:
    """Is this interpreter running `-m unstuck`? Only its own options count, not what comes after the program."""
    return any((letter, value) == ("m", "unstuck") for _, letter, value in flags(command[1:]))


def flags(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The one-letter flags of a Python, each with the word it stands in, and the value of those that take one."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            return
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for place, letter in enumerate(word[1:], 2):
            value = (word[place:] or next(rest, "")) if letter in "cmXW" else ""
            yield word, letter, value
            if letter in "cm":  # the program: what follows is its own
                return
            if value:
                break


def _named(python: str) -> str:
    path = os.path.expanduser(python)
    found = _python_in(path) or which(path)
    if found is None:
        what = "is not an executable program" if os.path.exists(path) else "does not exist"
        if os.sep not in path:
            what = "is not on PATH"
        raise UsageError(
            f"cannot use --python {python}",
            cause=f"{python} {what}; `unstuck env` shows which Python is used otherwise",
            next_command="unstuck env",
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


def which(program: str) -> str | None:
    """Find a program as the shell would."""
    if os.path.dirname(program):
        return program if _executable(program) else None
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(folder or os.curdir, program) for folder in folders)
    return next((path for path in paths if _executable(path)), None)


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


class Interpreter:
    """What an interpreter says about itself; `trouble`: why it does not answer."""

    def __init__(self, version: str = "", torch: str | None = None, trouble: str = "") -> None:
        self.version, self.torch, self.trouble = version, torch, trouble

    @property
    def too_old(self) -> bool:
        return bool(self.version) and tuple(map(int, self.version.split(".")[:2])) < OLDEST_PYTHON


def ask_python(python: str, limit: float = 20.0) -> Interpreter:
    """Start the interpreter and let it say what it is."""
    import json
    import subprocess

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
            last = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
            return Interpreter(trouble=f"it exited with status {done.returncode}: {last[0]}")
        # A sitecustomize may print too: the answer is the last line.
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        return Interpreter(answer["version"], answer["torch"])
    except subprocess.TimeoutExpired:
        return Interpreter(trouble=f"it did not answer within {limit:g} s")
    except OSError as error:
        return Interpreter(trouble=error.strerror or str(error))
    except (ValueError, IndexError, KeyError):
        return Interpreter(trouble="its answer is not the JSON that was expected")
