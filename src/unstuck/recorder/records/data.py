"""What is in the data that a model is given: each part of a batch with its columns, and the labels."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from .base import Record, Site, record
from .learning import LossOp

PartKind = Literal["label", "number", "features", "image", "sequence", "mask", "tokens"]
"""Of a part, by type and shape alone."""
PartRole = Literal["target", "other", "label", "features", "image", "sequence", "mask", "tokens"]
"""What a part is for. "other": it may be the target of a second task, a weight or an index."""


@record
class LargestColumn:
    column: int = 0
    size: float = 0.0
    """Its mean and twice its deviation together."""
    low: float = 0.0
    high: float = 0.0


@record
class WidestColumn:
    column: int = 0
    deviation: float = 0.0
    middle: float = 0.0
    """The median of the deviations of all columns."""


@record
class OffsetColumn:
    """The column furthest from 0 for its width."""

    column: int = 0
    times: float = 0.0
    """Its mean, in units of its deviation."""
    mean: float = 0.0
    deviation: float = 0.0


@record
class Scale:
    """How far the columns of a part are from each other and from 0."""

    columns: int = 0
    """So many have two numbers or more."""
    largest: LargestColumn
    widest: WidestColumn | None = None
    """None: none of them changes, and so below."""
    offset: OffsetColumn | None = None


@record
class Numbers:
    """Of those values of a column that are numbers."""

    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    sd: float = 0.0
    at_min: int = 0
    """So many are just the lowest,"""
    at_max: int = 0
    """or the highest."""
    whole: bool = False
    lowest: list[tuple[float, int]] = field(default_factory=list)
    """Value and sample; -1: a sample whose index nobody knows."""
    highest: list[tuple[float, int]] = field(default_factory=list)


@record
class Spread:
    """Of a fair choice of rows, in one column."""

    kept: int = 0
    q01: float = 0.0
    q25: float = 0.0
    q50: float = 0.0
    q75: float = 0.0
    q99: float = 0.0
    mad: float = 0.0
    """Median distance from the median."""
    distinct: int = 0
    inner_low: float = 0.0
    """Of what lies strictly between the lowest and the highest value."""
    inner_high: float = 0.0
    inner_distinct: int = 0


@record
class Link:
    """How much a column of whole numbers says of the target, less what chance gives."""

    as_category: float = 0.0
    as_number: float = 0.0
    codes: int = 0
    """Distinct values."""


@record
class ColumnStats:
    """One column, feature or channel over all rows read; or the means, or deviations, of all samples of a part."""

    column: int = 0
    rows: int = 0
    count: int = 0
    """Numbers among them."""
    nan: int = 0
    plus: int = 0
    """Of plus infinity,"""
    minus: int = 0
    zeros: int = 0
    numbers: Numbers | None = None
    """None: there are none."""
    spread: Spread | None = None
    """None: no row was kept."""
    link: Link | None = None


@record
class PartSeen:
    """One tensor of the batch, over all batches read."""

    path: str
    role: PartRole
    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    """Of one sample."""
    rows: int = 0
    ragged: bool = False
    """Its shape changes from batch to batch."""
    width: int = 0
    """Columns it has in all."""
    columns: list[ColumnStats] = field(default_factory=list)
    """Those worth a look, of what a model computes with; else none."""
    scale: Scale | None = None
    bad_rows: int = 0
    """With NaN or infinity,"""
    bad_samples: list[int] = field(default_factory=list)
    """and some of these, where their indices are known."""
    means: ColumnStats | None = None
    """Of images and sequences: the mean of each sample,"""
    deviations: ColumnStats | None = None
    """and its standard deviation."""


@record
class TextsSeen:
    path: str
    lines: int = 0
    empty: int = 0
    samples: list[int] = field(default_factory=list)
    """Some of the empty ones."""


@record
class LabelCounts:
    classes: int = 0
    floats: bool = False
    counts: list[tuple[float, int]] = field(default_factory=list)
    """Label and how often, the most frequent first; of many, both ends."""
    samples: int = 0
    entropy: float = 0.0
    batch_entropy: float | None = None
    """Mean over `batches` of `batch` samples each."""
    batches: int = 0
    batch: float = 0.0


@record
class LoaderData:
    """What one loader gives; or what a model is given, where that comes from no loader."""

    loader: int = -1
    """Its number; -1: there is none."""
    site: Site | None = None
    """Where it is iterated; without a loader, where the model is called."""
    made: Site | None = None
    dataset_site: Site | None = None
    """Where samples are given out, if that is written by the user."""
    dataset: str = ""
    """Its class."""
    samples: int | None = None
    sampler: str = ""
    own_batches: bool = False
    """The batch sampler is the user's,"""
    own_order: bool = False
    """or the sampler."""
    trains: bool = False
    """Steps are made between its batches."""
    rows: int = 0
    batches: int = 0
    parts: list[PartSeen] = field(default_factory=list)
    texts: list[TextsSeen] = field(default_factory=list)
    target: str | None = None
    """Path of the part that is the target."""
    target_op: LossOp | Literal[""] = ""
    """The loss function that was seen to be given it."""
    labels: LabelCounts | None = None


@record
class GivenLayer:
    """A layer that is given data as it came."""

    layer: str = ""
    kind: str = ""
    """Its class."""
    shape: list[int] = field(default_factory=list)
    away: bool = False
    """What it is given is on a GPU."""
    scale: Scale | None = None


@record
class DataSeen(Record):
    """All that is known of the data of one process; each telling is the whole."""

    loaders: list[LoaderData] = field(default_factory=list)
    given: list[GivenLayer] = field(default_factory=list)
    step: int = 0
