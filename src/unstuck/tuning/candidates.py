"""What is searched in, and what is known of each candidate."""

from __future__ import annotations

from dataclasses import dataclass, field

from .figures import Figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .settings import Settings

MEMORY = 0.7
"""Share of the free memory that the workers of a candidate may take."""


@dataclass(frozen=True)
class Limits:
    """What there is to search in."""

    cores: int
    most_workers: int
    gpu: bool = False
    methods: tuple[str, ...] = ()
    """Start methods to try if workers fail with the present one."""
    room: int | None = None
    """Free bytes of shared memory."""
    length: int | None = None
    """Batches of a pass, where it is known."""
    memory: int | None = None
    """Bytes that may still be used."""
    process_bytes: int = 0
    """What a worker could need at most, as long as none is known: a copy of all that this process has."""
    no_workers: str = ""
    """Why no worker may be started at all, in sentences."""
    undivided: str = ""
    """Why the number of workers decides how many samples there are: more than one must stay as many."""
    not_persistent: str = ""
    """Why workers must not live on from pass to pass."""


@dataclass
class Candidate:
    """One set of settings and what is known about it."""

    settings: Settings
    figures: Figures = field(default_factory=Figures)
    slices: int = 0
    latest: tuple[float, float] = (0.0, float("-inf"))
    """Rate of the last slice, and when it was taken."""
    start_up: float = 0.0
    cpu_per_sample: float = 0.0
    wanted_per_sample: float = 0.0
    """The same with the time it waited for a core: on a machine that others use too, this is what it needs."""
    whole: bool = False
    batch: float = 1.0
    """Samples of a batch."""
    batch_bytes: int = 0
    worker_bytes: int = 0
    error: str = ""
    refuses: bool = False
    """The error comes out of the script's own code, in a worker."""


def too_much(settings: Settings, limits: Limits, known: Iterable[Candidate]) -> str:
    """Why these settings must not even be tried: what their batches and workers would take."""
    known = list(known)
    needed = settings.ahead * max((each.batch_bytes for each in known), default=0)
    if limits.room is not None and needed > limits.room // 2:
        return f"not measured: its batches would take {needed / 2**20:,.0f} MiB of shared memory"
    worker = max((each.worker_bytes for each in known), default=0) or limits.process_bytes
    needed = settings.num_workers * worker
    if limits.memory is not None and needed > limits.memory * MEMORY:
        return f"not measured: its workers could take {needed / 2**30:,.1f} GiB of memory"
    return ""
