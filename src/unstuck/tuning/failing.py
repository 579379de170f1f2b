"""What an error of a candidate says: in one line, and whose it is."""

from __future__ import annotations

STARTING = ("RuntimeError", "OSError", "AttributeError", "PicklingError", "TypeError")
"""Errors of a worker that could not be started, died, or must not use the GPU after a fork."""
IN_WORKER = "in DataLoader worker process"
"""How torch begins the message of an error that its worker caught."""
AFTER_FORK = "in forked subprocess"
"""How CUDA names the one error in a worker that another start method mends."""


def in_short(error: BaseException) -> str:
    """Type and last line: of an error in a worker the message is a whole traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    name = type(error).__name__
    return last if last.startswith(name) else f"{name}: {last}" if last else name


def of_the_data(error: BaseException) -> bool:
    """It comes out of the script's own code in a worker, not out of starting or losing one."""
    text = str(error)
    return IN_WORKER in text and AFTER_FORK not in text
