"""Ends a script and all it started, each before those it started: none must see a child end and go on."""

from __future__ import annotations

import time

import psutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unstuck.supervise.child import Child

TICK = 0.02


def tree(process: Child) -> list[psutil.Process]:
    """Each after the one that started it; empty once the script has ended."""
    try:
        main = psutil.Process(process.pid)
        return [main, *main.children(recursive=True)] if process.returncode is None else []
    except psutil.Error:
        return []


def end(process: Child, before: list[psutil.Process] | None = None) -> None:
    """`before`: those that were there a moment ago, and may have lost their parent since."""
    for each in dict.fromkeys([*tree(process), *(before or ())]):
        try:
            each.kill()
        except psutil.Error:
            continue
    while process.poll() is None:
        time.sleep(TICK)
