"""What is in the data: each part of a batch with its columns, the labels; and what a scan of a whole dataset found."""

from __future__ import annotations

from typing import Literal

from . import Record, Site, Struct
from .learning import LossOp, Torn

PartKind = Literal["label", "number", "features", "image", "sequence", "mask", "tokens"]  # by type and shape alone
PartRole = Literal["target", "other", "label", "features", "image", "sequence", "mask", "tokens"]
# What a part is for. "other": it may be the target of a second task, a weight or an index.


PairedWith = Literal[
    "next", "previous", "reversed",
    "as text",  # inputs are sorted by number as text (10 before 2), targets by number,
    "text as numbers",  # or the other way round
]  # fmt: skip


class LargestColumn(Struct):
    column: int = 0
    size: float = 0.0  # its mean and twice its deviation together
    low: float = 0.0
    high: float = 0.0


class WidestColumn(Struct):
    column: int = 0
    deviation: float = 0.0
    middle: float = 0.0  # the median of the deviations of all columns


class OffsetColumn(Struct):
    """The column furthest from 0 for its width."""

    column: int = 0
    times: float = 0.0  # its mean, in units of its deviation
    mean: float = 0.0
    deviation: float = 0.0


class Scale(Struct):
    """How far the columns of a part are from each other and from 0."""

    columns: int = 0  # with two numbers or more
    largest: LargestColumn
    widest: WidestColumn | None = None  # None: none of them changes, and so below
    offset: OffsetColumn | None = None


class Numbers(Struct):
    """Of the finite values of a column."""

    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    sd: float = 0.0
    at_min: int = 0  # so many are just the lowest,
    at_max: int = 0  # or the highest
    whole: bool = False
    lowest: list[tuple[float, int]] = []  # value and sample; -1: its index is not known
    highest: list[tuple[float, int]] = []


class Spread(Struct):
    """Of a fair choice of rows, in one column."""

    kept: int = 0
    q01: float = 0.0
    q25: float = 0.0
    q50: float = 0.0
    q75: float = 0.0
    q99: float = 0.0
    mad: float = 0.0  # median distance from the median
    distinct: int = 0
    inner_low: float = 0.0  # of what lies strictly between the lowest and the highest value
    inner_high: float = 0.0
    inner_distinct: int = 0


class Link(Struct):
    """How much a column of codes says of the target, less what chance gives: of whole numbers, or others at even
    distances."""

    as_category: float = 0.0
    as_number: float = 0.0
    codes: int = 0  # distinct values
    smooth: float | None = None
    """How much of the first is left where neighbouring codes mean nearly the same, in standard deviations above what is
    left of codes in any order (None: too few codes, or chance is too near),"""
    one: float | None = None  # and the share that a single code has in it
    rows: int = 0


class ColumnStats(Struct):
    """One column, feature or channel over all rows read; or the means, or deviations, of all samples of a part."""

    column: int = 0
    rows: int = 0
    count: int = 0  # finite values among them
    nan: int = 0
    plus: int = 0  # infinities
    minus: int = 0
    zeros: int = 0
    numbers: Numbers | None = None  # None: there are none
    spread: Spread | None = None  # None: no row was kept
    link: Link | None = None


class PartSeen(Struct):
    """One tensor of the batch, over all batches read."""

    path: str
    role: PartRole
    dtype: str = ""
    shape: list[int] = []  # of one sample
    rows: int = 0
    ragged: bool = False  # its shape changes from batch to batch
    width: int = 0  # columns it has in all
    columns: list[ColumnStats] = []  # those worth a look, of what a model computes with; else none
    scale: Scale | None = None
    bad_rows: int = 0  # with NaN or Inf,
    bad_samples: list[int] = []  # and some of these, where their indices are known
    means: ColumnStats | None = None  # of images and sequences: the mean of each sample,
    deviations: ColumnStats | None = None  # and its standard deviation


class TextsSeen(Struct):
    path: str
    lines: int = 0
    empty: int = 0
    samples: list[int] = []  # some of the empty ones


class LabelCounts(Struct):
    classes: int = 0
    floats: bool = False
    counts: list[tuple[float, int]] = []  # label and how often, the most frequent first; of many, both ends
    samples: int = 0
    entropy: float = 0.0
    batch_entropy: float | None = None  # mean over `batches` of `batch` samples each
    batches: int = 0
    batch: float = 0.0


class PairsSeen(Struct):
    """Inputs that came once more, in a later batch."""

    again: int = 0
    changed: int = 0  # of these: with another target
    example: tuple[int, float, int, float] | None = None  # one of them: a batch read and its target, twice


class Relation(Struct):
    """Whether inputs say anything about their targets, by simple tests on the rows that were kept: standard deviations
    above what chance gives."""

    rows: int = 0
    coarse: bool = False  # of pictures or sequences, a few numbers of each: that these show nothing proves nothing
    by_mean: float = 0.0  # means of the inputs differ between classes, or go with the target
    by_neighbour: float = 0.0  # the most similar input has the same target
    paired: PairedWith | None = None  # the order of the targets that fits best, where all samples are known,
    by_mean_paired: float = 0.0  # and the first test with it


class LoaderData(Struct):
    """What one loader gives; or what a model gets, where that comes from no loader."""

    loader: int = -1  # its number; -1: there is none
    site: Site | None = None  # where it is iterated; without a loader, where the model is called
    made: Site | None = None
    dataset_site: Site | None = None  # of the user's code that gives the samples
    dataset: str = ""  # its class
    samples: int | None = None
    sampler: str = ""
    own_batches: bool = False  # the batch sampler is the user's,
    own_order: bool = False  # or the sampler
    trains: bool = False  # the training makes steps between its batches
    rows: int = 0
    batches: int = 0
    parts: list[PartSeen] = []
    texts: list[TextsSeen] = []
    target: str | None = None  # path of the part that is the target
    target_op: LossOp | Literal[""] = ""  # the loss function that got it
    labels: LabelCounts | None = None
    pairs: PairsSeen = PairsSeen()
    relation: Relation | None = None
    made_up: bool | None = None
    """Where these tests find nothing: the script draws inputs or targets at random and computes nothing from them
    (False: all that it draws goes into a computation; None: it draws nothing, or its source cannot be read)."""
    as_finished: Site | None = None
    """Likewise: a line that gathers results of tasks as they finish, while something else keeps the tasks' order."""


class GivenLayer(Struct):
    """A layer that gets data as it came."""

    layer: str = ""
    kind: str = ""  # its class
    shape: list[int] = []
    away: bool = False  # its input is on a GPU
    scale: Scale | None = None


class Agreement(Struct):
    """Of what the model gets with its target, where both have the same elements: standard deviations above what chance
    gives."""

    rows: int = 0
    whole: float = 0.0
    by_row: float = 0.0  # of each row by itself, whatever its sign
    drawn: Site | None = None  # a line that draws the target at random, where nothing else is computed from it


class DataSeen(Record):
    """All that is known of the data of one process; each one is the whole."""

    loaders: list[LoaderData] = []
    given: list[GivenLayer] = []
    agreement: Agreement | None = None
    torn: Torn | None = None
    step: int = 0


class LostRows(Record):
    """`random.shuffle` copied rows of an array or tensor over others."""

    site: Site | None = None
    shape: list[int] = []
    tensor: bool = False
    calls: int = 0  # of it, for any array or tensor
    lost: int = 0  # rows, by the last of these
    different: int = 0  # rows before the first call,
    left: int = 0  # and now
    step: int = 0


class BadSample(Struct):
    sample: int | None = None  # its index; of a dataset with other keys, the order it was drawn in; None: not known
    key: str = ""  # such a key, as text


class FailedSample(BadSample):
    message: str = ""


class SampleErrors(Struct):
    """Samples that raise the same error at the same line."""

    type: str
    site: Site | None = None  # the innermost line of the user's
    count: int = 0
    first: list[FailedSample] = []


class HungSample(BadSample):
    seconds: float = 0.0
    spins: bool = False  # it burns processor time
    site: Site | None = None  # the innermost line of the user's, where it hung


class KillingSample(BadSample):
    """The worker died of it."""

    exitcode: int | None = None


class Scanned(Record):
    """What a scan of one dataset found."""

    data: LoaderData
    done: int = 0  # samples (or batches) read, whatever came of it,
    of: int | None = None  # of so many, where that is known
    what: Literal["samples", "batches"] = "samples"
    stream: bool = False  # it is iterated, not indexed
    limited: bool = False
    workers: int = 0  # 0: it was read in the very process of the script
    why: str = ""  # why one process read it
    seconds: float = 0.0
    interrupted: bool = False
    gave_up: bool = False  # too many samples hang or kill their worker
    failed: int = 0
    errors: list[SampleErrors] = []
    hung: list[HungSample] = []
    died: list[KillingSample] = []
    median: float = 0.0  # seconds of a sample
    slow: list[tuple[float, int]] = []  # seconds and sample
    duplicates: list[list[int]] = []  # samples with the very same content, in groups,
    duplicated: int = 0  # and how many are too many, in all
    unprinted: int = 0  # not compared: they have parts of unknown types
    odd: dict[str, int] = {}  # samples that could not be read for statistics, by the error
