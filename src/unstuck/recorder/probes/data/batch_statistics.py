"""What is in the batches, read in main as the loader hands them out: the first ones, then some, within the budget.

Where a training draws from no loader, the batch is what the model gets. One record says all that is known so far,
ever more rarely, and once more at the end.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import replace
from types import FrameType
from typing import Any

from ... import flight, governor, gpu, journal, loading, tensors, user_code
from ... import layout as at
from ...loading import Loading
from ...probe import Probe
from ...records import Site
from ...records.data import DataSeen, GivenLayer, LoaderData, Relation, Scale
from ...records.learning import LossOp
from ..learning import script_lines
from . import (
    agreement,
    bounded_rows,
    columns,
    finish_order,
    loader_source,
    made_up,
    own_tables,
    part,
    statistics_report,
    torn_tables,
)
from .statistics import Gathered

MOST_SOURCES = 4
MOST_BATCHES = 600  # of a source that are read
TELL_AT = (12, 40, 120, 360)  # batches read of a source that trains
MOST_LAYERS = 6  # that get data as it came, of which it is noted what they get
MOST_TARGETS = 64  # of losses, that are looked for among the parts of a batch
MOST_COMPARED, MIN_COMPARED = 1 << 15, 4  # numbers of a target; the least where they are only some of a part
RELATED, RELATED_COARSE = 3.0, 10.0
"""Standard deviations above chance: then inputs say something about their targets. Of pictures less may be left where
some of them have the target of another."""
NO_LOADER = -1


class Source:
    """What is known of one loader's data; without a loader, of what the model is given at one line."""

    def __init__(self, about: LoaderData, known: Loading | None) -> None:
        self.about, self.loading, self._since = about, known, flight.steps()
        self.gathered = Gathered(has_target=known is not None)
        self.stepped = False  # a step was made between two batches of one pass
        self.matched = 0
        self.step = -1  # of the last batch, where there is no loader
        self._is_read = False  # how the script makes its data, in
        self._files: list[str] = []
        self._made_up: bool | None = None  # and what was found
        self._as_finished: Site | None = None
        self.own = own_tables.OwnTables()

    def is_like(self, tensor: Any) -> bool:
        """It may be another batch of the only tensor that the model is given."""
        part = self.gathered.parts.get("")
        return part is not None and part.shape == [int(size) for size in tensor.shape[1:]] and not part.ragged

    @property
    def trains(self) -> bool:
        if self.loading is None:
            return flight.steps() > self._since
        return self.stepped or bool(self.loading.trained)

    def record(self) -> LoaderData:
        found = statistics_report.filled(self.about, self.gathered, self.trains)
        if self.loading is None:
            found = statistics_report.reordered(found, self.gathered, self.own)
        if _is_related(found.relation):
            return found
        if not self._is_read:
            self._is_read = True
            sites = (found.dataset_site, found.made, found.site)
            self._files = [*(site[0] for site in sites if site), *script_lines.user_files(None)]
            self._as_finished = finish_order.gathered(self._files)
        if found.relation is not None and self._files:
            self._made_up, self._files = made_up.made_up(self._files), []
        return replace(found, made_up=self._made_up, as_finished=self._as_finished)


def _is_related(known: Relation | None) -> bool:
    least = RELATED_COARSE if known is not None and known.coarse else RELATED
    return known is not None and max(known.by_mean, known.by_neighbour) > least


class LayerInput:
    """A layer that is given data as it came."""

    def __init__(self, kind: str, tensor: Any) -> None:
        self.kind, self.shape, self.away = kind, [int(size) for size in tensor.shape], gpu.away(tensor)
        self.scale: Scale | None = None

    def measure(self, tensor: Any) -> None:
        known = part.Part("", tensor)
        rows = bounded_rows.Rows(int(tensor.shape[0]), None)
        rows.search = False
        with sys.modules["torch"].no_grad():
            known.take(tensor, rows)
            self.scale = columns.scale(known.columns)


class BatchStatistics(Probe):
    name = "data"
    governed = frozenset(("batch_looked_at", "graph_given", "model_given"))

    def forget(self) -> None:
        self.sources: dict[int, Source] = {}  # by number of the loader
        self.given: dict[str, LayerInput] = {}  # by name of the layer
        self.agreements = agreement.Agreements()
        self.torn = torn_tables.TornTables()
        self._now: tuple[Source, list[tuple[str, Any]]] | None = None
        """The batch in work: its source, and its tensors, weakly."""

    def missed(self, event: str) -> None:
        self._now = None

    # --- batches ---------------------------------------------------------------------------------------------------

    def batch_looked_at(self, known: Loading, iterator: Any, batch: Any) -> None:
        self._now = None
        loader, source = known.loader(), self.sources.get(known.number)
        if source is None:
            if len(self.sources) >= MOST_SOURCES or loader is None:
                return
            about = loader_source.describe(loader, known, sys._getframe(1))
            source = self.sources[known.number] = Source(about, known)
        if loading.batches_of(iterator) > 1 and flight.steps() > known.steps:
            source.stepped = True
        samples, single = loading.samples_of(known, iterator)
        if source.gathered.batches < MOST_BATCHES:
            with sys.modules["torch"].no_grad():
                source.gathered.take(batch, samples, single=single)
            self._read(source, batch)

    def model_given(self, arguments: tuple[Any, ...], frame: FrameType | None) -> None:
        """The outermost module is called, in a step that is watched closely."""
        if sys.modules["torch"].is_grad_enabled():
            self.agreements.given(arguments, frame)
            self.torn.given(arguments, frame)
            self._given(arguments[0] if len(arguments) == 1 else arguments, frame)

    def graph_given(self, tensor: Any, frame: FrameType | None, plain: bool) -> None:
        """Before the backward pass of a sampled step. Modules are watched in a few steps only: in the others this is
        the batch, where it has the same shape; always for a `plain` model, of tensors alone."""
        source = self.sources.get(NO_LOADER)
        if not plain:
            if source is not None and source.step != flight.steps() and source.is_like(tensor):
                self._given(tensor, frame, source.about.site)
            return
        self.agreements.given(tensor, frame)
        self.torn.given(tensor, frame)
        self._given(tensor, frame)
        about = self.scale_of("matrix product", tensor) if not self.given else None
        if about is not None:
            self.layer_is_given("x @ w", about)

    def _given(self, batch: Any, frame: FrameType | None, site: Site | None = None) -> None:
        if any(loader.trained or not loader.ended for loader in loading.everything()):
            return  # it may be a loader's batch
        site = site or user_code.site_of(frame)
        source = self.sources.get(NO_LOADER)
        if source is None:
            source = self.sources[NO_LOADER] = Source(LoaderData(site=site), None)
        if source.gathered.batches < MOST_BATCHES and source.about.site == site:
            source.step = flight.steps()
            with sys.modules["torch"].no_grad():
                source.gathered.take(batch, None, open_=True)
            source.own.look(frame)
            self._read(source, batch)

    def _read(self, source: Source, batch: Any) -> None:
        parts = [(path, value) for path, value in tensors.parts(batch) if type(value) not in (list, tuple)]
        self._now = source, [(path, weakref.ref(tensor)) for path, tensor in parts]
        if source.trains and source.gathered.batches in TELL_AT:
            self._tell()

    # --- what becomes of them --------------------------------------------------------------------------------------

    def loss_given(self, target: Any, op: LossOp, ignored: float | None) -> None:
        """A loss function was given this as its target: is it a part of the batch in work?"""
        if target is not None and gpu.near(target):
            with sys.modules["torch"].no_grad():
                self.agreements.take(target)
                self.torn.take(target)
        if self._now is None or target is None or gpu.away(target):
            return
        source, parts = self._now
        if source.matched >= MOST_TARGETS:
            return
        source.matched += 1
        path = _among(parts, target)
        if path is not None:
            source.gathered.targets.setdefault(path, (op, ignored))
        elif source.loading is None:
            with sys.modules["torch"].no_grad():
                source.gathered.take_target(target, op, ignored)

    def came(self, tensor: Any) -> bool:
        """A layer is given this: it is a part of the batch in work, just as the loader gave it."""
        for path, ref in self._now[1] if self._now is not None else ():
            if self._now is not None and ref() is tensor:
                self._now[0].gathered.used.add(path)
                return True
        return False

    def scale_of(self, kind: str, tensor: Any) -> LayerInput | None:
        """In a step that is watched closely: a layer with parameters is called with data that no layer made before."""
        if len(self.given) >= MOST_LAYERS or not tensor.is_floating_point() or tensor.dim() < 2 or not tensor.numel():
            return None
        given = LayerInput(kind, tensor)
        if given.away:
            kept = part.channel_dim(tensor, "sequence" if tensor.dim() == 3 else "image")
            most = max(1 << 14, 16 * int(tensor.shape[kept]))
            thin = gpu.thinned(tensor.detach(), most, kept)
            gpu.bring([thin], lambda copies: given.measure(copies[0]), self.name)
        elif gpu.near(tensor) and tensors.readable(tensor):
            given.measure(tensor.detach())
        return given

    def layer_is_given(self, name: str, about: LayerInput) -> None:
        """`about`: what `scale_of` gave for it."""
        if len(self.given) < MOST_LAYERS:
            self.given.setdefault(name, about)

    # --- telling ---------------------------------------------------------------------------------------------------

    def last(self) -> None:
        known = any(source.trains and source.gathered.batches for source in self.sources.values())
        noise = self.agreements.record()
        if known or (noise is not None and noise.drawn is not None) or self.torn.record() is not None:
            with governor.Reading():
                self._tell()

    def _tell(self) -> None:
        with sys.modules["torch"].no_grad():
            known = [source.record() for source in self.sources.values() if source.gathered.batches]
        given = [
            GivenLayer(layer=name, kind=layer.kind, shape=layer.shape, away=layer.away, scale=layer.scale)
            for name, layer in self.given.items()
        ]
        agreed, torn = self.agreements.record(), self.torn.record()
        seen = DataSeen(loaders=known, given=given, agreement=agreed, torn=torn, step=flight.steps())
        journal.replace(seen, at.DATA_STATS)


def _among(parts: list[tuple[str, Any]], target: Any) -> str | None:
    """Which of these parts (path and weak reference) it is: by memory, or by value where there is little to compare."""
    for path, ref in parts:
        part = ref()
        if part is not None and part.device == target.device and part.numel() and _same(part, target):
            return path
    return None


def _same(part: Any, target: Any) -> bool:
    """The same memory, or the same values; or those of its values that are no gaps."""
    torch = sys.modules["torch"]
    if part.numel() == target.numel() and part.data_ptr() == target.data_ptr() and part.dtype == target.dtype:
        return True
    if not target.numel() <= part.numel() <= MOST_COMPARED:
        return False
    if part.numel() == target.numel():
        return bool(torch.equal(_flat(part), _flat(target)))
    if not part.is_floating_point() or target.numel() < MIN_COMPARED:
        return False
    flat = _flat(part)
    flat = flat[torch.isfinite(flat)]
    return bool(flat.numel() == target.numel() and torch.equal(flat, _flat(target)))


def _flat(target: Any) -> Any:
    return target.detach().reshape(-1).double()
