"""Whether the run's own processes are in each other's way: more of them ready to run than there are processors."""

from __future__ import annotations

from unstuck.model import Strain
from unstuck.rules.pace.measured import OTHERS, mean

FULL = 0.8
"""Share of the processors left to it that the run must keep busy."""
LATE = 0.3
"""Share of the time in which workers want to run that they must wait for a processor."""
SHARED = 0.2
"""Share of the processors that others may use without being the reason."""


def crowded(strain: Strain) -> bool:
    """The processors are full, and it is this run that fills them: others who do are not its fault."""
    if strain.others >= max(OTHERS, SHARED * strain.cores):
        return False
    return strain.cpu >= FULL * (strain.cores - strain.others) and late(strain) >= LATE


def late(strain: Strain) -> float:
    """Of the time in which the workers' threads want to run: the part in which they have no processor."""
    ran, delayed = sum(f.cpu for f in strain.fetchers), sum(f.delayed for f in strain.fetchers)
    return delayed / max(1e-9, ran + delayed)


def threads(strain: Strain) -> float:
    """Threads that a worker runs, on average."""
    return mean(float(f.threads) for f in strain.fetchers)
