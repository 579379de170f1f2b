"""What a worker's processor time says beside its siblings': batches are dealt out in turn, so all work alike.

A worker that has used minutes more than the others spent them on what it is at now: that is how long it has been
at it, at least, also where nobody watched.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from unstuck.model import Case, Look, Process
from unstuck.rules.words import seconds

SPREAD = 5.0
"""How many times further out than the others lie apart."""
LONE = 0.5
"""With a single sibling there is no spread to measure: so much of its own time is taken for one."""
START = 2.0
"""Seconds by which workers may differ from their start alone."""


@dataclass(frozen=True)
class Excess:
    """Processor seconds of one worker beyond its siblings'."""

    own: float
    others: float
    """Their median."""
    count: int

    @property
    def seconds(self) -> float:
        return self.own - self.others

    @property
    def line(self) -> str:
        other = "the other worker" if self.count == 1 else f"the {self.count} other workers at the median"
        return (
            f"it has used {seconds(self.own)} of processor time since it was started, {other} {seconds(self.others)}: "
            "batches are dealt out in turn, so the difference went into this one"
        )


def excess(case: Case, process: Process) -> Excess | None:
    """None where there is nothing to compare with, or the difference is of the kind the others have too."""
    look = next((look for look in reversed(case.looks) if look.stacks), None)
    if look is None or process.role != "worker":
        return None
    own = _cpu(process)
    others = [_cpu(sibling) for sibling in siblings(look, process)]
    if not others:
        return None
    apart = max(others) - min(others) if len(others) > 1 else LONE * others[0]
    found = Excess(own, median(others), len(others))
    return found if own - max(others) > max(START, SPREAD * apart) else None


def siblings(look: Look, process: Process) -> list[Process]:
    """Workers of the same loader, as far as that can be seen: of the same parent and about the same age."""
    return [
        other
        for other in look.processes
        if other.ppid == process.ppid
        and other.role == "worker"
        and other.pid != process.pid
        and abs(other.began - process.began) < max(2.0, 0.5 * (look.at - process.began))
    ]


def _cpu(process: Process) -> float:
    return process.main_thread.cpu if process.main_thread else 0.0
