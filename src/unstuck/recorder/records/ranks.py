"""Several ranks: the groups they form, and the lines at which they call each other."""

from __future__ import annotations

from . import Record, Site


class WorldJoined(Record):
    """A process asked to become a rank: `init_process_group` was called."""

    rank: int | None = None
    world: int | None = None
    backend: str = ""
    address: str = ""  # where the ranks are to meet: host:port, or a file
    site: Site | None = None
    dumps: list[str] = []  # where torch's own flight recorder would write, if it does: without the rank at its end
    restart: int = 0  # how often the launcher had started the ranks anew


class ReductionUnfinished(Record):
    """DistributedDataParallel refused a forward pass: the backward pass before it gave some parameters no gradient."""

    names: list[str] = []  # of these parameters; none: not known which
    message: str = ""
    site: Site | None = None
    step: int = 0


class CollectiveGroup(Record):
    """A group of ranks, at its first use."""

    number: int  # in this process
    name: str = ""
    size: int = 0
    ranks: list[tuple[int, int, int]] = []  # first, last and step of each run of ranks


class CollectiveSite(Record):
    """A line of the user's that calls a collective."""

    number: int
    site: Site
