"""What was read of the data, as rules read it: from batches of a training, or from a whole data set in a scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from unstuck.model import Case, Where
from unstuck.recorder.records.learning import Activation, Learning
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import main_loss, saturated

Site = tuple[str, int, str]
FEATURES = ("features", "sequence", "image")
DEAD = 0.9
"""Share of a layer's units that never answer."""
NAMED = 6
CLASSIFY = frozenset(("cross_entropy", "nll", "bce", "bce_logits", "kl_div", "log_softmax"))
MEASURE = frozenset(("mse", "squared", "absolute", "smooth_l1", "huber"))
"""Loss functions to which a label is a number."""


@dataclass(frozen=True)
class Data:
    """What one loader gives."""

    pid: int
    about: dict[str, Any]
    """As record/data_read.py and record/data_told.py tell it."""
    given: tuple[dict[str, Any], ...] = ()
    """Layers that are given data as it came: class, and the scale of what they are given."""
    learning: Learning | None = None
    constant: bool = False
    """The loss is at rest where a constant prediction would be."""
    scanned: bool = False
    """Read in a scan: there is no training beside it."""
    parts: tuple[dict[str, Any], ...] = field(default=())

    @property
    def rows(self) -> int:
        return int(self.about["rows"])

    @property
    def learned(self) -> bool:
        """The loss came well down: whatever the data is like, the training copes with it."""
        loss = main_loss(self.learning) if self.learning is not None else None
        return self.learning is not None and loss is not None and curves.learned(self.learning, loss)

    @property
    def broken(self) -> bool:
        """A loss was no number: what comes after that says nothing of the data's scale."""
        return self.learning is not None and any(loss.nonfinite for loss in self.learning.losses)

    def labels(self) -> dict[str, Any] | None:
        """The labels counted, where they are classes to the loss: whole numbers may be counts of something as well."""
        counted: dict[str, Any] | None = self.about.get("labels")
        if counted is None:
            return None
        op = self.about.get("target_op")
        heads = (op,) if op else tuple(head.op for head in self.learning.heads) if self.learning is not None else ()
        classify, measure = bool(CLASSIFY & set(heads)), bool(MEASURE & set(heads))
        if classify and not measure:
            return counted
        if counted.get("floats"):
            return counted if not measure and all(value in (0, 1) for value, _ in counted["counts"]) else None
        return counted if classify or not measure else None

    def features(self) -> list[dict[str, Any]]:
        """Parts that a model computes with: no target nor what may be another one, no ids, no mask."""
        return [part for part in self.parts if part["role"] in FEATURES]

    def where(self, sample: int | None = None) -> Where:
        """Where samples are given out, if that is written by the user; else where the loader is made, or used."""
        file, line, function = self._sites()[0] if self._sites() else (None, None, None)
        return Where(file=file, line=line, function=function or None, pid=self.pid, sample=sample)

    def where_used(self) -> Where:
        """Where the loader is made, or used: for what is a matter of the loader."""
        site = self.about.get("made") or self.about.get("site") or (None, None, None)
        return Where(file=site[0], line=site[1], function=site[2] or None, pid=self.pid)

    def also(self) -> tuple[Where, ...]:
        return tuple(Where(file=f, line=line, function=n or None, pid=self.pid) for f, line, n in self._sites()[1:2])

    def _sites(self) -> list[Site]:
        known = [self.about.get(name) for name in ("dataset_site", "made", "site")]
        return [(site[0], site[1], site[2]) for site in known if site]

    def read(self) -> str:
        """How much of it was looked at."""
        of = self.about.get("samples")
        if self.scanned:
            return f"{self.rows:,} samples" if of is None or self.rows >= of else f"{self.rows:,} of {of:,} samples"
        return f"{self.rows:,} samples in {self.about['batches']:,} batches"


def seen(case: Case) -> Iterator[Data]:
    """Every loader that trains, and what was scanned, as last told."""
    latest: dict[tuple[int, str], Any] = {}
    for fact in case.facts:
        if fact.kind in ("data", "scan"):
            latest[fact.pid, fact.kind] = fact
    if not latest:
        return
    trained = {learning.pid: learning for learning in case.learnings}
    still = {learning.pid for learning, *_ in curves.stuck(case)}
    for (pid, kind), fact in latest.items():
        for about in fact.data["loaders"]:
            if about["trains"] or kind == "scan":
                yield Data(
                    pid=pid,
                    about=about,
                    given=tuple(fact.data.get("given") or ()),
                    learning=trained.get(pid),
                    constant=pid in still,
                    scanned=kind == "scan",
                    parts=tuple(about["parts"]),
                )


def blocked(data: Data) -> Activation | None:
    """An activation whose units are flat or dead, behind a layer that is given data as it came."""
    first = {each["layer"] for each in data.given}
    for each in data.learning.activations if data.learning is not None else ():
        if each.name in first and (saturated(each) or (each.late_batches >= 12 and each.late_dead > DEAD * each.units > 0)):
            return each
    return None


def called(part: dict[str, Any], column: int | None = None) -> str:
    """`batch[0]`, column 3."""
    name = f"`batch{part['path']}`"
    if column is None or (part["role"] == "features" and part.get("width") == 1):
        return name
    return f"{'channel' if part['role'] == 'image' else 'column'} {column} of {name}"


def listed(numbers: list[Any], of: int | None = None) -> str:
    shown = ", ".join(f"{each}" for each in numbers[:NAMED])
    rest = (len(numbers) if of is None else of) - min(len(numbers), NAMED)
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def number(value: float) -> str:
    return curves.number(value)
