"""What is in the data: read from the batches of a training, or from a whole dataset in a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from unstuck import text
from unstuck.model import Case, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.data import ColumnStats, GivenLayer, LabelCounts, LoaderData, Numbers, PartSeen
from unstuck.recorder.records.learning import Learning, Loss
from unstuck.rules.loader_reports import first_of
from unstuck.rules.training import (
    REGRESSION_OPS,
    end_mean,
    has_learned,
    main_loss,
    share_of_constant,
    stuck_at_constant,
    worse_than_constant,
)
from unstuck.rules.training import number as number

FEATURE_ROLES = ("features", "sequence", "image")
CLASSIFICATION_OPS = frozenset(("cross_entropy", "nll", "bce", "bce_logits", "kl_div", "log_softmax"))
MAX_NAMED = 6  # columns or samples in one line of evidence

MIN_CODE_REPEATS = 3
MIN_CODE_DISTANCE = 2.0  # from the other values, in units of their width
MIN_DISTANCE_UNLIKE_CODE = 10.0  # the same for a value that people do not usually write for "unknown"
MIN_OTHER_VALUES = 12  # distinct: in a column of few values none is out of the way
ROUND_CODES = tuple(sign * 10.0**power for power in range(3, 37) for sign in (1, -1))
OTHER_CODES = (99.0, 99.9, 99.99, 999.9, 32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0)

TYPE_ENDS = (32767.0, 32768.0, 65535.0)  # at which a recording is clipped: no codes within a sequence
MIN_REST_TIMES = 1.0  # values of a sequence that are none, for each that is a code
MIN_CODE_DEVIATIONS = 12.0  # from the mean of these: two widths of three deviations to each side
ROUNDING = 1e-6  # of the square of a deviation as recorded

MIN_LABEL_BATCHES = 8
MIN_LABELS_PER_BATCH = 4
MAX_ENTROPY_WITHIN = 0.3  # of the labels within a batch, as a share of what is possible there
MIN_ENTROPY_OVERALL = 0.5


@dataclass(frozen=True)
class Data:
    """What one loader gives; or what the model gets, if there is no loader."""

    pid: int
    loader: LoaderData
    given: Sequence[GivenLayer] = ()
    learning: Learning | None = None
    stuck: bool = False  # the loss has come to rest where a constant prediction would be
    useless: bool = False  # its loss ends no lower than that of a constant prediction, or far above it
    scanned: bool = False  # read in a scan: there is no training

    @property
    def has_loader(self) -> bool:
        return self.loader.loader >= 0

    @property
    def loss(self) -> Loss | None:
        return main_loss(self.learning) if self.learning is not None else None

    @property
    def learned(self) -> bool:
        """The loss came well down: whatever the data is like, the training copes with it."""
        return self.learning is not None and self.loss is not None and has_learned(self.learning, self.loss)

    @property
    def fails(self) -> bool:
        """The loss never left that of a constant prediction."""
        return self.stuck and not self.learned

    def harm(self) -> str:
        """What became of a training that is no better than a constant prediction."""
        loss = self.loss
        if not self.useless or loss is None or self.learning is None:
            return ""
        share = share_of_constant(self.learning, loss)
        compared = f", {share:,.2g} times that of a constant prediction" if share is not None else ""
        return (
            f"after {loss.count:,} steps the loss is {number(end_mean(loss))}{compared}: no better than predicting the "
            "same for every sample"
        )

    def labels(self) -> LabelCounts | None:
        """The labels counted, if they are classes to the loss: whole numbers may be counts of something as well."""
        counted = self.loader.labels
        if counted is None:
            return None
        heads = {head.op for head in self.learning.heads} if self.learning is not None else set()
        ops = {self.loader.target_op} if self.loader.target_op else heads
        classification, regression = not CLASSIFICATION_OPS.isdisjoint(ops), not ops.isdisjoint(REGRESSION_OPS)
        if not regression:
            binary = all(value in (0, 1) for value, _ in counted.counts)
            return counted if classification or binary or not counted.floats else None
        return counted if classification and not counted.floats else None

    def features(self) -> list[PartSeen]:
        """Parts that a model computes with: no target and nothing that may be another one, no ids, no mask."""
        return [part for part in self.loader.parts if part.role in FEATURE_ROLES]

    def where(self, sample: int | None = None) -> Where:
        """Where samples are made, if the user wrote that; else where the loader is made, or used."""
        return replace(first_of(self.pid, None, *self._sites), sample=sample)

    def where_used(self) -> Where:
        """Where the loader is made, or used."""
        return first_of(self.pid, None, self.loader.made, self.loader.site)

    def also(self) -> tuple[Where, ...]:
        return tuple(first_of(self.pid, None, site) for site in self._sites[1:2])

    @property
    def _sites(self) -> list[Site]:
        return [site for site in (self.loader.dataset_site, self.loader.made, self.loader.site) if site]

    def extent(self) -> str:
        """How much of it was read."""
        rows, total = self.loader.rows, self.loader.samples
        if self.scanned:
            return f"{rows:,} samples" if total is None or rows >= total else f"{rows:,} of {total:,} samples"
        whose = "" if self.has_loader else " that the model got"
        return f"{rows:,} samples in {self.loader.batches:,} batches{whose}"


def read_data(case: Case) -> Iterator[Data]:
    """Every training loader, and every scan, as last recorded."""
    trainings = {learning.pid: learning for learning in case.learnings} if case.data else {}
    stuck = {learning.pid for learning, *_ in stuck_at_constant(case)} if case.data else set()
    useless = {learning.pid for learning in worse_than_constant(case)} if case.data else set()
    for seen in {each.pid: each for each in case.data}.values():
        for loader in seen.loaders:
            if loader.trains:
                pid = seen.pid
                yield Data(pid, loader, seen.given, trainings.get(pid), pid in stuck, pid in useless)
    for scan in {each.pid: each for each in case.scans}.values():
        yield Data(scan.pid, scan.data, scanned=True)


# --- codes for "unknown" -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """A value that stands for "unknown", and the range of the real ones."""

    value: float
    count: int
    samples: list[int]
    low: float
    high: float
    about: bool = False  # three standard deviations around their mean, as far as that is known


def code_in(part: PartSeen, column: ColumnStats) -> Code | None:
    """A value repeated at one end of a column, far outside of what lies between both ends."""
    numbers, spread = column.numbers, column.spread
    if part.role == "sequence" and numbers is not None:
        return _code_in_sequence(column, numbers)
    if part.role != "features" or numbers is None or spread is None or spread.inner_distinct < MIN_OTHER_VALUES:
        return None
    low = numbers.min, numbers.at_min, numbers.lowest, spread.inner_low - numbers.min
    high = numbers.max, numbers.at_max, numbers.highest, numbers.max - spread.inner_high
    width = spread.inner_high - spread.inner_low
    for value, count, extremes, distance in (low, high):
        far = MIN_CODE_DISTANCE if is_code(value) else MIN_DISTANCE_UNLIKE_CODE
        if count >= MIN_CODE_REPEATS and distance > far * width:
            samples = [sample for extreme, sample in extremes if extreme == value and sample >= 0]
            return Code(value, count, samples, spread.inner_low, spread.inner_high)
    return None


def _code_in_sequence(column: ColumnStats, numbers: Numbers) -> Code | None:
    """Of sequences no values are kept: mean and deviation without the code are worked out from those of all."""
    low, high = (numbers.min, numbers.at_min, numbers.lowest), (numbers.max, numbers.at_max, numbers.highest)
    for value, count, extremes in (low, high):
        rest = column.count - count
        if not is_code(value) or abs(value) in TYPE_ENDS or count < MIN_CODE_REPEATS or rest < MIN_REST_TIMES * count:
            continue
        mean = (column.count * numbers.mean - count * value) / rest
        squares = (column.count * (numbers.sd**2 + numbers.mean**2) - count * value**2) / rest
        noise = ROUNDING * column.count * numbers.sd**2 / rest  # what rounding may leave of the difference
        deviation = (max(0.0, squares - mean**2) + noise) ** 0.5
        if abs(value - mean) > MIN_CODE_DEVIATIONS * deviation:
            samples = list(dict.fromkeys(sample for extreme, sample in extremes if extreme == value and sample >= 0))
            return Code(value, count, samples, mean - 3 * deviation, mean + 3 * deviation, about=True)
    return None


def is_code(value: float) -> bool:
    """-999, 9999, 99999, 1e9, 65535 …: what people write for "unknown"."""
    near = any(abs(value - code) <= 1e-6 * abs(code) or abs(value - code) == 1 for code in ROUND_CODES)
    return near or abs(value) in OTHER_CODES


# --- order of the labels -------------------------------------------------------------------------------------


def class_by_class(labels: LabelCounts) -> bool:
    """Each batch holds hardly more than one of many classes."""
    if labels.batches < MIN_LABEL_BATCHES or labels.batch < MIN_LABELS_PER_BATCH or labels.batch_entropy is None:
        return False
    if labels.classes > labels.samples / 4:
        return False
    possible = min(log(labels.classes), log(labels.batch))
    mixed = labels.entropy >= MIN_ENTROPY_OVERALL * log(labels.classes)
    return mixed and labels.batch_entropy < MAX_ENTROPY_WITHIN * possible


# --- in words ------------------------------------------------------------------------------------------------


def part_name(part: PartSeen, column: int | None = None) -> str:
    """`batch[0]`, column 3 of `batch[0]`"""
    name = f"`batch{part.path}`"
    if column is None or (part.role == "features" and part.width == 1):
        return name
    return f"{'channel' if part.role == 'image' else 'column'} {column} of {name}"


def listed(names: Sequence[int | str], total: int | None = None) -> str:
    return text.listed(names, total, MAX_NAMED)
