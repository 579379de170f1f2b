"""Asks an interpreter what it is, by starting it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

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
