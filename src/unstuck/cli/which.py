"""Finds a program as the shell would; `shutil.which` does too, but loads four compression libraries first."""

from __future__ import annotations

import os


def which(program: str) -> str | None:
    if os.path.dirname(program):
        return program if _runs(program) else None
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or os.curdir, program)
        if _runs(path):
            return path
    return None


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
