"""Everything measured of how a training learns, gathered in sampled steps and told as one record, ever more rarely.

Each telling is the whole: the latest is all a rule needs.
"""

from __future__ import annotations

from time import monotonic, thread_time
from types import FrameType
from typing import Any

import torch

from ... import flight, governor, gpu, journal
from ... import layout as at
from ...probe import Probe
from ...records.learning import FlatOperation, Learning
from ..numerics import source_lines
from ..numerics.nan_origin import NanOrigins
from ..numerics.spikes import Spikes
from ..numerics.steep import Steep
from ..numerics.tracing import Tracing
from . import graph_reading
from .activations import Activations
from .graph_reading import Graph
from .heads import Heads
from .losses import Losses, Series
from .naming import Names
from .observed_steps import ObservedSteps
from .owners import Owners
from .ownership import Ownership
from .schedules import Schedules
from .script_lines import ScriptLines
from .updates import Updates

FIRST = 8
"""Steps until the first telling; then at each time half as many again."""
PAUSE, LONGEST = 1.0, 60.0
"""Seconds between two tellings: at least one, and half as long as the training has run, but no more than a minute."""
LOST = 64
SURE = 16
"""Losses that are no number, after which what became of the training is told once more."""
ONCE = 0.002
"""Seconds of one look at a slope, that count as such: what is found is looked up in the source once."""
NOTHING_WITHIN = (float("inf"), float("-inf"))


class LearningProbe(Probe):
    name = "learning"
    governed = frozenset(("before_backward", "before_step"))

    def __init__(self) -> None:
        self._begin(gpu.copies)

    def _begin(self, copies: gpu.Copies) -> None:
        self.copies = copies
        self.saved = graph_reading.SavedTensors()
        self.lines, self.names = ScriptLines(), Names()
        self.updates = Updates(copies)
        self.ownership = Ownership(self.updates, copies)
        self.observed = ObservedSteps(self.updates, self.ownership, self.names, copies)
        self.activations = Activations(self.saved, self.names, copies)
        self.heads = Heads(self.saved, copies)
        self.schedules = Schedules(copies)
        self.owners = Owners(self.updates, self.ownership, self.activations, self.names, self.lines)
        self.spikes = Spikes()
        self.losses = Losses(copies, self.spikes.came_late)
        self.steep = Steep(self.saved)
        self.origins = NanOrigins(self.saved, self.names, self.updates, self.steep)
        self.tracing = Tracing(self.saved)
        self.flat: FlatOperation | None = None
        self.compiled = False
        self._counts: Any = None
        """By the identity of an optimizer: its steps, and how often its gradients were cleared."""
        self._named = 0
        """Parameters known when names were last looked for."""
        self._watching = False
        """Each loss is handed over with its graph."""
        self._next, self._look = FIRST, FIRST
        """Steps until the next telling, and until who owns what is looked at once more."""
        self._told = self._began = 0.0

    # --- losses ------------------------------------------------------------------------------------------------------

    def limits(self) -> tuple[float, float]:
        """Values of a loss between these need no word until the next sampled step."""
        steep = any(series.steep for series in self.losses.series.values())
        self._watching = self.tracing.waiting or (steep and governor.allows("steep"))
        return NOTHING_WITHIN if self._watching else self.losses.limits()

    def losses_read(self, values: list[float], frame: FrameType | None) -> None:
        self.losses.read(values, frame)

    def loss_stands_out(self, root: Any, value: float, frame: FrameType) -> None:
        began = thread_time()
        series = self.losses.of(frame)
        if series is not None:
            self._value(series, root, value, frame)
        if self._watching:
            governor.governor.charge("steep", self.name, min(thread_time() - began, ONCE))

    def gpu_loss(self, root: Any, frame: FrameType, plain: Any) -> None:
        self.copies.collect()
        series = self.losses.of(frame)
        if series is None:
            return
        if not self.losses.read_later(series, plain, self._broken_again):
            self._value(series, root, plain.item(), frame)
        elif self.tracing.look(root):
            self.tell(news=True)

    def _value(self, series: Series, root: Any, value: float, frame: FrameType) -> None:
        """A value whose graph is there."""
        if self.tracing.look(root):
            self.tell(news=True)
        self.losses.take(series, value)
        if value - value != 0.0:  # infinite, or NaN
            self._broken(series, root, value, frame)
            return
        if series.far:
            self.spikes.note(series, value, frame)
        if self._watching or self.copies.exact:
            self.steep.look(root, series, frame)

    def _broken(self, series: Series, root: Any, value: float, frame: FrameType) -> None:
        """The first time: look for where that was born, while the graph is there. The second: the training goes on, so
        its next step can tell the line."""
        if series.nonfinite == 1:
            if self.names.stale:
                self.names.find(frame)
            late = gpu.away(root) and not self.copies.exact
            self.origins.look(root, value, frame, series, late=late)
            self.tell(news=True)
        elif series.nonfinite == 2:
            birth = self.origins.of(series)
            if birth is not None and not self.compiled:
                self.tracing.begin(birth)
        else:
            self._broken_again(series)

    def _broken_again(self, series: Series) -> None:
        if series.nonfinite == SURE:
            self.tell(news=True)

    # --- the backward pass -------------------------------------------------------------------------------------------

    def before_backward(self, root: Any, frame: FrameType) -> None:
        """Read the graph."""
        if root is None:
            return
        if root.grad_fn is None:
            if root.requires_grad:
                self._name_all(frame)
                self.ownership.at_backward()
                self.observed.nothing_reached()
            return
        with torch.no_grad():
            self._read(root, frame)
        if not self.updates.stepping() and flight.state[flight.BACKWARDS] >= self._next:
            self.tell()

    def _read(self, root: Any, frame: FrameType) -> None:
        graph = graph_reading.read(root.grad_fn)
        self.compiled = self.compiled or graph.compiled
        self.updates.reached(graph.leaves)
        self._name_all(frame)
        self.ownership.at_backward()
        self.observed.at_backward(graph.leaves, whole=not graph.capped)
        self.activations.note(graph)
        if graph.flat and not graph.capped and self.flat is None:
            self._note_flat(root.grad_fn, graph, frame)
        self.heads.note(root.grad_fn, frame)
        series = self.losses.of(frame)
        if series is not None and not self._watching and (not gpu.away(root) or self.copies.exact):
            self.steep.look(root, series, frame)

    def missed(self, event: str) -> None:
        if event == "before_backward":
            self.ownership.missed()
            self.observed.missed()

    def _name_all(self, frame: FrameType) -> None:
        """Once when the first graph is read, and again where modules or parameters came that have no name."""
        known = self.updates.parameters
        more = len(known) > 2 * self._named and any(key not in self.names.names for key in known)
        if self.names.stale or more:
            self._named = len(known)
            self.names.find(frame)

    def _note_flat(self, root: Any, graph: Graph, frame: FrameType) -> None:
        lost = [name for leaf in graph_reading.behind(root, graph.flat) if (name := self.names.name(leaf))]
        if lost:
            operation = graph_reading.FLAT[graph_reading.name_of(graph.flat[0])]
            self.flat = FlatOperation(
                operation=operation, lost=lost[:LOST], site=source_lines.written(operation, frame)
            )

    # --- steps -------------------------------------------------------------------------------------------------------

    def optimizer_built(self, optimizer: Any, frame: FrameType, counts: Any) -> None:
        self._counts = counts
        site = self.ownership.note_built(optimizer, frame)
        if site is not None:
            self.lines.files.append(site[0])

    def before_step(self, optimizer: Any) -> None:
        self.updates.before(optimizer)

    def after_step(self, optimizer: Any, count: int) -> None:
        """`optimizer`: None where the script writes its updates out itself; `count`: so many has it made."""
        if self.tracing.waiting:
            self.tracing.stepped()
        entry = self.updates.known(optimizer)
        entry.steps = count
        if optimizer is not None:
            entry.note_rate(optimizer, max(0, flight.steps() - 1))  # the seam has counted this one
            entry.site = self.ownership.stepped(optimizer)
        self.updates.after(optimizer, entry)
        self.observed.after_step(optimizer)
        if count >= self._look:
            self._look = count + max(FIRST, count // 2)
            self.owners.look()
        if count >= self._next:
            self.tell()

    def sampling_changed(self, full: bool) -> None:
        self.observed.sampling_changed(full)

    # --- schedules, scaler, compiler ---------------------------------------------------------------------------------

    def gradients_clipped(self, norm: Any, limit: Any, calls: int) -> None:
        self.schedules.clips.note(norm, limit, calls, self.schedules.scaler.scaled)

    def scheduler_stepped(self, scheduler: Any, counts: Any) -> None:
        self.schedules.stepped(scheduler, counts)

    def scaler_scaled(self, scaler: Any) -> None:
        self.schedules.scaler.scaling(scaler)

    def scaler_unscaled(self, scaler: Any) -> None:
        self.schedules.scaler.unscaled()

    def scaler_updated(self, scaler: Any) -> None:
        self.schedules.scaler.updated(scaler)

    def model_compiled(self) -> None:
        self.observed.compiled = True
        self.observed.end()

    def saved_tensor_hooks_used(self) -> None:
        self.saved.hooked = True

    # --- telling -----------------------------------------------------------------------------------------------------

    def tell(self, *, news: bool = False) -> None:
        backwards = flight.state[flight.BACKWARDS]
        steps = max((each.steps for each in self.updates.stepping()), default=backwards)
        now = monotonic()
        if not news and now - self._told < min(LONGEST, max(PAUSE, 0.5 * (self._told - self._began))):
            self._next = steps + 1 + steps // 50
            return
        self._began = self._began or now
        self._told, self._next = now, steps + max(FIRST, steps // 2)
        self.owners.look()
        journal.replace(self.record(), at.LEARNING)

    def last(self) -> None:
        with governor.Reading():
            self.losses.last()
            if not self.updates.stepping() and not self.losses.series:
                return
            self.copies.last()
            if not self.owners.gone:
                self.owners.look()
            journal.replace(self.record(), at.LEARNING)

    def record(self) -> Learning:
        if self._counts is not None:
            self.updates.count(self._counts)
            self.ownership.count(self._counts)
        layers, owners, observed = self.activations.layers, self.owners, self.observed
        return Learning(
            steps=flight.steps(),
            backwards=flight.state[flight.BACKWARDS],
            losses=[series.record() for series in self.losses.series.values()],
            optimizers=[each.record(number) for number, each in enumerate(self.updates.stepping())],
            built=self.ownership.records(owners.built),
            schedulers=self.schedules.records(),
            parameters=owners.parameters(),
            heads=self.heads.records(),
            activations=[layer.record(place, owners.sites.get(place)) for place, layer in sorted(layers.items())],
            clears=self._counts.all_clears if self._counts is not None else 0,
            clips=self.schedules.clips.record(),
            scaler=self.schedules.scaler.record(),
            births=self.origins.births,
            spikes=self.spikes.found,
            steep=self.steep.last,
            flat=self.flat,
            kept_in=owners.kept_in,
            strays=owners.strays,
            first_weights=owners.first_weights,
            observed=observed.observed,
            modes=observed.modes.by_root,
            cut=observed.cut,
            leaf_losses=observed.leaf_losses,
            eval_site=self.lines.eval_call() if observed.modes.idle else None,
            compiled=self.compiled,
            on_gpu=self.copies.used,
            cost=governor.governor.spent,
        )

    def forget(self) -> None:
        """What its parent trains must not be freed here, for it may be on a GPU."""
        self.remove()
        self.copies.forget()
        self.copies.abandon(dict(self.__dict__))
        self._begin(self.copies)

    def remove(self) -> None:
        self.observed.end()
        self.tracing.stop()
