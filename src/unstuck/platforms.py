"""Where unstuck can watch: on Linux. Elsewhere one sentence says what works and what does not."""

from __future__ import annotations

import sys

from unstuck.errors import UsageError

_NAMES = {"darwin": "macOS", "win32": "Windows", "cygwin": "Windows"}


def can_watch() -> bool:
    """All it sees of a run comes from Linux: /proc, signals, memory-mapped flight files on its local disks."""
    return sys.platform.startswith("linux")


def what_works() -> str:
    here = _NAMES.get(sys.platform, sys.platform)
    return f"unstuck watches trainings on Linux only; on {here}, `unstuck explain` and `unstuck report` work"


def refuse_elsewhere(command: str) -> None:
    """For a command that can do nothing but watch."""
    if not can_watch():
        raise UsageError(f"unstuck {command} needs Linux", cause=what_works(), next_command="unstuck explain")
