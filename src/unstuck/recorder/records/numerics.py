"""Numbers that break: where NaN and Inf come from, infinite slopes, spikes, clipping, the loss scaler."""

from __future__ import annotations

from typing import Literal

from . import Site, Struct

Why = Literal[  # what an operation did to give NaN or Inf
    "log-of-zero", "log-of-negative", "beyond-one",  # acos, asin, atanh
    "log-of-negative-data",  # outside any graph
    "division-by-zero", "spread-of-too-few",  # std or var of fewer values than it needs
    "row-masked",  # softmax of a row that is all -inf
    "power", "exp-overflow", "root-of-negative", "root-overflow", "reciprocal-root-of-zero",
    "labels-ignored",  # every label is ignore_index
    "mean-of-nothing", "result",  # its result is bad, why is not known
    "computed",  # computed by the script outside any graph
    "spread-as-difference",  # the root of a variance computed so: below 0 by rounding
    "half-precision", "number-given",  # it got a single bad number
    "slope-of-root", "slope-of-power", "slope-at-one",
]  # fmt: skip


class BadRows(Struct):
    """Where in a tensor the bad elements are."""

    count: int = 0
    of: int = 0
    rows: list[int] = []  # the first of them,
    bad_rows: int = 0  # of so many


class Operation(BadRows):
    """An operation of the graph with a NaN or Inf result, or slope."""

    operation: str  # as a person writes it: log, div, softmax
    why: Why
    made: bool = False  # it got finite numbers: this is where NaN or Inf was born
    backward: bool = False  # its result is finite; its slope is not
    masked_out: bool = False  # a mask removes the bad result again; the gradient passes through it all the same
    detail: str = ""  # in numbers: "of 1 value", "power 0.5", "ignore_index (-100)"
    example: str = ""  # what it got
    dtype: str = ""
    layer: str = ""
    order: int = 0  # number in the order of the forward pass
    path: list[int] = []
    site: Site | None = None
    step: int = 0  # where `backward`: at which a backward pass went through it


class ComputedValue(Struct):
    """A tensor without a graph that the script computed itself, from finite numbers."""

    operation: str
    why: Why
    detail: str = ""
    example: str = ""  # what it got
    plain: bool = False  # nothing that learns is in it: all it is computed from was read, and is finite
    site: Site | None = None
    warned: bool = False  # torch warned of it, at that line; whether this very tensor was made there was not seen


class BadTensor(BadRows):
    """A tensor without a graph that holds NaN or Inf."""

    name: str = ""  # as the training calls it; empty for one that only the graph has
    operation: str = ""  # that got it,
    role: str = ""  # and as what: self, other, weight …
    order: int = 0
    path: list[int] = []
    shape: list[int] = []
    nan: int = 0
    inf: int = 0
    negative_inf_only: bool = False
    columns: list[int] = []
    bad_columns: int = 0
    whole_columns: list[int] = []  # in which every element is bad
    address: int = 0
    file: str = ""
    function: str = ""
    computed: ComputedValue | None = None
    assigned: Site | None = None  # where the name first gets its value
    site: Site | None = None


class GrownWeight(Struct):
    """Norm of a weight matrix when last looked at, and now."""

    name: str = ""
    before: float = 0.0
    now: float = 0.0


class BrokenParameter(Struct):
    name: str = ""
    shape: list[int] = []


class DrawnBatch(Struct):
    """The present batch: its number in the pass, and its samples."""

    number: int = 0
    size: int | None = None
    indices: list[int] | None = None


class Birth(Struct):
    """A NaN or Inf loss, and what is known of where it came from."""

    value: float = 0.0
    step: int = 0
    site: Site | None = None  # of the loss: the line that calls backward
    before: int = 0  # finite losses before it,
    last: float = 0.0  # and the last of them
    since: int = -1  # step of the first bad value
    late: bool = False  # it was read some steps after it happened (on a GPU)
    batch: list[DrawnBatch] = []
    weights: list[GrownWeight] = []
    operations: list[Operation] = []  # the oldest first
    outside: list[BadTensor] = []  # that operations of the graph got from outside it, the oldest first
    broken_parameters: list[BrokenParameter] = []
    sizes: list[tuple[str, float]] = []  # largest results along the forward pass: operation and size
    inputs: list[BadTensor] = []  # in the user's frames
    computed: ComputedValue | None = None  # in a function of the user's, seen in one of the next steps
    sought: bool = False  # whether the script computed it is still being looked for, in the next steps


class LargeRows(Struct):
    """Rows of a batch's tensor that are far larger than the others."""

    name: str = ""
    rows: list[int] = []
    largest: float = 0.0
    usual: float = 0.0
    shape: list[int] = []


class Spike(Struct):
    """A loss far above its usual level, with its batch."""

    step: int = 0
    value: float = 0.0
    usual: float = 0.0
    spread: float = 0.0
    site: Site | None = None
    number: int | None = None  # of the batch in its pass
    indices: list[int] | None = None
    rows: list[LargeRows] | None = None  # None: there was no time to look


class Clips(Struct):
    """Calls of clip_grad_norm_, or updates of a script that clips without it."""

    calls: int = 0
    clipped: int = 0
    hardest: float = 0.0
    sum_ratio: float = 0.0
    max_norm: float = 0.0
    scaled: int = 0  # calls on gradients that a GradScaler, or the script itself, had not unscaled yet
    site: Site | None = None
    scales: list[float] = []  # of a script that clips without it: what its loss is multiplied with, first and last


class Scaler(Struct):
    """A GradScaler."""

    scale: float | None = None
    first: float | None = None
    lowest: float | None = None
    updates: int = 0
    skipped_in_row: int = 0
