"""What was read of the data, as rules read it: from batches of a training, or from a whole dataset in a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unstuck.model import Case, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.data import GivenLayer, LabelCounts, LoaderData, PartSeen
from unstuck.recorder.records.learning import Activation, Learning
from unstuck.rules.training import has_learned, is_saturated, main_loss, stuck_at_constant

FEATURES = ("features", "sequence", "image")
DEAD = 0.9
"""Share of a layer's units that never answer."""
NAMED = 6
CLASSIFY = frozenset(("cross_entropy", "nll", "bce", "bce_logits", "kl_div", "log_softmax"))
MEASURE = frozenset(("mse", "squared", "absolute", "smooth_l1", "huber"))
"""Loss functions to which a label is a number."""


@dataclass(frozen=True)
class Data:
    """What one loader gives; or the model is given, where there is none."""

    pid: int
    loader: LoaderData
    given: Sequence[GivenLayer] = ()
    learning: Learning | None = None
    constant: bool = False
    """The loss is at rest where a constant prediction would be."""
    scanned: bool = False
    """Read in a scan: there is no training beside it."""

    @property
    def has_loader(self) -> bool:
        return self.loader.loader >= 0

    @property
    def learned(self) -> bool:
        """The loss came well down: whatever the data is like, the training copes with it."""
        loss = main_loss(self.learning) if self.learning is not None else None
        return self.learning is not None and loss is not None and has_learned(self.learning, loss)

    @property
    def broken(self) -> bool:
        """A loss was NaN: what comes after that says nothing of the data's scale."""
        return self.learning is not None and any(loss.nonfinite for loss in self.learning.losses)

    def labels(self) -> LabelCounts | None:
        """The labels counted, where they are classes to the loss: whole numbers may be counts of something as well."""
        counted = self.loader.labels
        if counted is None:
            return None
        heads = {head.op for head in self.learning.heads} if self.learning is not None else set()
        ops = {self.loader.target_op} if self.loader.target_op else heads
        classify, measure = not CLASSIFY.isdisjoint(ops), not MEASURE.isdisjoint(ops)
        if classify and not measure:
            return counted
        if counted.floats:
            return counted if not measure and all(value in (0, 1) for value, _ in counted.counts) else None
        return counted if classify or not measure else None

    def features(self) -> list[PartSeen]:
        """Parts that a model computes with: no target nor what may be another one, no ids, no mask."""
        return [part for part in self.loader.parts if part.role in FEATURES]

    def where(self, sample: int | None = None) -> Where:
        """Where samples are given out, if that is written by the user; else where the loader is made, or used."""
        return self._where(next(iter(self._sites()), None), sample)

    def where_used(self) -> Where:
        """Where the loader is made, or used: for what is a matter of the loader."""
        return self._where(self.loader.made or self.loader.site)

    def also(self) -> tuple[Where, ...]:
        return tuple(self._where(site) for site in self._sites()[1:2])

    def _where(self, site: Site | None, sample: int | None = None) -> Where:
        file, line, function = site or (None, None, None)
        return Where(file=file, line=line, function=function or None, pid=self.pid, sample=sample)

    def _sites(self) -> list[Site]:
        return [site for site in (self.loader.dataset_site, self.loader.made, self.loader.site) if site]

    def read(self) -> str:
        """How much of it was looked at."""
        rows, of = self.loader.rows, self.loader.samples
        if self.scanned:
            return f"{rows:,} samples" if of is None or rows >= of else f"{rows:,} of {of:,} samples"
        whose = "" if self.has_loader else " the model was given"
        return f"{rows:,} samples in {self.loader.batches:,} batches{whose}"


def seen(case: Case) -> Iterator[Data]:
    """Every loader that trains, and what was scanned, as last told."""
    trained = {learning.pid: learning for learning in case.learnings} if case.data else {}
    still = {learning.pid for learning, *_ in stuck_at_constant(case)} if case.data else set()
    for told in {each.pid: each for each in case.data}.values():
        for loader in told.loaders:
            if loader.trains:
                yield Data(told.pid, loader, told.given, trained.get(told.pid), told.pid in still)
    for scan in {each.pid: each for each in case.scans}.values():
        yield Data(scan.pid, scan.data, scanned=True)


def blocked(data: Data) -> Activation | None:
    """An activation whose units are flat or dead, behind a layer that is given data as it came."""
    first = {each.layer for each in data.given}
    for each in data.learning.activations if data.learning is not None else ():
        dead = each.late_batches >= 12 and each.late_dead > DEAD * each.units > 0
        if each.name in first and (dead or is_saturated(each)):
            return each
    return None


def called(part: PartSeen, column: int | None = None) -> str:
    """`batch[0]`, column 3."""
    name = f"`batch{part.path}`"
    if column is None or (part.role == "features" and part.width == 1):
        return name
    return f"{'channel' if part.role == 'image' else 'column'} {column} of {name}"


def listed(names: Sequence[int | str], of: int | None = None) -> str:
    shown = ", ".join(f"{each}" for each in names[:NAMED])
    rest = (len(names) if of is None else of) - min(len(names), NAMED)
    return f"{shown} and {rest:,} more" if rest > 0 else shown
