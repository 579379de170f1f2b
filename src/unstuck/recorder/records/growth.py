"""What grows from step to step: containers and graphs that the training reaches by name, and the graph of its loss."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Record, Site, record

GrowerKind = Literal[
    "container",
    "cycle",  # what itertools.cycle keeps of its first pass
    "hooks",  # of a module
    "graph",  # the autograd graph of one tensor
]


@record
class Grower:
    """One container, or one tensor's graph, that is longer than at the snapshot before."""

    path: str = ""
    """`penalty_history in main`, `self.history of Trainer`."""
    kind: GrowerKind = "container"
    holds: str = ""
    """Type of its elements."""
    graph: bool = False
    """Its tensors carry an autograd graph."""
    bytes: int = 0
    """Of an element's own tensors, as sampled; what their graphs keep is not in it."""
    first: int = 0
    first_step: int = 0
    """Its length when it was first seen, and the step; the same now."""
    now: int = 0
    step: int = 0
    times: int = 0
    """Snapshots in a row that found it longer."""
    capped: bool = False
    """There is more of it than was counted."""
    hook: bool = False
    """It is reached through a hook of a module: activations are kept."""
    site: Site | None = None
    """The statement that fills it."""


@record
class GrowthSnapshot(Record):
    """What was longer at a request than at the one before; what weighs most first."""

    step: int = 0
    rss: int = 0
    """Bytes of the process that are in memory; 0: not known."""
    device: int | None = None
    """Bytes that torch's allocator has handed out on the GPU; None: none is used."""
    objects: int = 0
    """Looked at for this."""
    seconds: float = 0.0
    growing: list[Grower] = field(default_factory=list)


@record
class GraphPoint:
    """One walk through the graph behind the loss."""

    call: int = 0
    """Of backward, as far as they are counted."""
    step: int = 0
    nodes: int = 0
    old: int = 0
    """Nodes that were there at the walk before."""
    capped: bool = False
    """There are more than were counted."""
    oldest: int = 0
    """Number of the oldest node."""


@record
class LossGraph(Record):
    """The graph behind the loss holds nodes of earlier steps, and more of them at each walk."""

    points: list[GraphPoint] = field(default_factory=list)
    site: Site | None = None
    """The line that calls backward."""
