"""Numbers that break: where NaN was born, slopes without end, spikes, clipping, the loss scaler."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Site, record

Why = Literal[
    "log-of-zero", "log-of-negative", "beyond-one",  # acos, asin, atanh
    "division-by-zero", "spread-of-too-few",  # std or var of fewer values than it needs
    "row-masked",  # softmax of a row that is all -inf
    "power", "exp-overflow", "root-of-negative", "root-overflow", "reciprocal-root-of-zero",
    "labels-ignored",  # every label is ignore_index
    "mean-of-nothing", "result",  # its result is bad, why is not known
    "computed",  # computed by the script outside any graph
    "half-precision", "number-given",  # a single bad number was given to it
    "slope-of-root", "slope-of-power", "slope-at-one",
]  # fmt: skip
"""What an operation did with numbers to give something that is none."""


@record
class BadRows:
    """Where in a tensor the bad elements are."""

    count: int = 0
    of: int = 0
    rows: list[int] = field(default_factory=list)
    """The first of them,"""
    bad_rows: int = 0
    """of so many."""


@record
class Operation(BadRows):
    """An operation of the graph that gave what is no number, or whose slope is none."""

    operation: str
    """As a person writes it: log, div, softmax."""
    why: Why
    made: bool = False
    """It was given numbers: it is where it was born."""
    backward: bool = False
    """Its result is a number; its slope is not."""
    masked_out: bool = False
    """A mask takes the bad result out again; the gradient passes through it all the same."""
    detail: str = ""
    """In numbers: "of 1 value", "power 0.5", "ignore_index (-100)"."""
    example: str = ""
    """What it was given."""
    dtype: str = ""
    layer: str = ""
    order: int = 0
    """Number in the order of the forward pass."""
    path: list[int] = field(default_factory=list)
    site: Site | None = None
    traced: bool = False
    """The site was seen in the next step's own stack, not only read in the source."""
    step: int = 0
    """Where `backward`: at which a backward pass went through it."""


@record
class ComputedValue:
    """A tensor without a graph that the script computed itself, from numbers."""

    operation: str
    why: Why
    detail: str = ""
    site: Site | None = None


@record
class BadTensor(BadRows):
    """A tensor without a graph that holds NaN or infinity."""

    name: str = ""
    """As the training calls it; empty for one that only the graph has."""
    operation: str = ""
    """That was given it,"""
    role: str = ""
    """and as what: self, other, weight …"""
    order: int = 0
    path: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    nan: int = 0
    inf: int = 0
    negative_inf_only: bool = False
    columns: list[int] = field(default_factory=list)
    bad_columns: int = 0
    whole_columns: list[int] = field(default_factory=list)
    """Columns in which every element is bad."""
    address: int = 0
    file: str = ""
    function: str = ""
    computed: ComputedValue | None = None
    assigned: Site | None = None
    """Where the name first gets its value."""
    site: Site | None = None
    traced: bool = False


@record
class GrownWeight:
    """A weight matrix: its norm when last looked at, and now."""

    name: str = ""
    before: float = 0.0
    now: float = 0.0


@record
class BrokenParameter:
    name: str = ""
    shape: list[int] = field(default_factory=list)


@record
class DrawnBatch:
    """The batch in work: its number in the pass, and the samples that made it up."""

    number: int = 0
    size: int | None = None
    indices: list[int] | None = None


@record
class Birth:
    """A loss that was no number, and what is known of where that came from."""

    value: float = 0.0
    step: int = 0
    site: Site | None = None
    """Of the loss: the line that calls backward."""
    before: int = 0
    """Losses that were numbers before it,"""
    last: float = 0.0
    """and the last of them."""
    since: int = -1
    """Step at which the first bad value came."""
    late: bool = False
    """It was read some steps after it happened (on a GPU)."""
    batch: list[DrawnBatch] = field(default_factory=list)
    weights: list[GrownWeight] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    """The oldest first."""
    outside: list[BadTensor] = field(default_factory=list)
    """Given to operations of the graph from outside it, the oldest first."""
    broken_parameters: list[BrokenParameter] = field(default_factory=list)
    sizes: list[tuple[str, float]] = field(default_factory=list)
    """Largest results along the forward pass: operation and size."""
    inputs: list[BadTensor] = field(default_factory=list)
    """In the user's frames."""


@record
class LargeRows:
    """Rows of a batch's tensor that are far larger than the others."""

    name: str = ""
    rows: list[int] = field(default_factory=list)
    largest: float = 0.0
    usual: float = 0.0
    shape: list[int] = field(default_factory=list)


@record
class Spike:
    """A loss far above its usual level, with its batch."""

    step: int = 0
    value: float = 0.0
    usual: float = 0.0
    spread: float = 0.0
    site: Site | None = None
    number: int | None = None
    """Of the batch in its pass."""
    indices: list[int] | None = None
    rows: list[LargeRows] | None = None
    """None: there was no time to look."""


@record
class Clips:
    """Calls of clip_grad_norm_."""

    calls: int = 0
    clipped: int = 0
    hardest: float = 0.0
    sum_ratio: float = 0.0
    max_norm: float = 0.0
    scaled: int = 0
    """Calls on gradients that a GradScaler had not unscaled yet."""
    site: Site | None = None


@record
class Scaler:
    """A GradScaler."""

    scale: float | None = None
    first: float | None = None
    lowest: float | None = None
    updates: int = 0
    skipped_in_row: int = 0
