"""Everything measured of how a training learns, gathered in sampled steps: hears the events, and hands each to the part
that it is for."""

from __future__ import annotations

from math import isfinite
from time import thread_time
from types import FrameType
from typing import Any

import torch

from ... import flight, governor, gpu, loading, stepping
from ...probe import Probe
from ..numerics.nan_search import NanSearch
from . import observed_steps
from .backward_pass import BackwardPass
from .losses import Series
from .measurements import FIRST_STEPS, Measurements

MIN_LOSSES = 16  # until clipping that the script writes out itself is looked for, where the loss does not fall
MAX_STEEP_SECONDS = 0.002  # of one look at a slope, that count as such: its line is looked up in the source only once
AND_AFTER = 2  # what is copied before a step is compared after it, at the same cost
NOTHING_WITHIN = (float("inf"), float("-inf"))


class LearningProbe(Probe):
    name = "learning"

    def __init__(self) -> None:
        self._begin(gpu.copies)

    def _begin(self, copies: gpu.Copies) -> None:
        self.measured = Measurements(copies)
        self._backward = BackwardPass(self.measured)
        self._nan = NanSearch(self.measured)
        self._watching = False  # each loss is handed over with its graph
        self._next_look = FIRST_STEPS
        """Steps until who owns what is looked at once more."""

    # --- losses ------------------------------------------------------------------------------------------------------

    def limits(self) -> tuple[float, float]:
        """Values of a loss between these need not be handed over until the next sampled step."""
        losses = self.measured.losses
        steep = any(series.steep for series in losses.series.values())
        self._watching = self._nan.tracing is not None or (steep and governor.allows("steep"))
        return NOTHING_WITHIN if self._watching else losses.limits()

    def losses_read(self, values: list[float], frame: FrameType | None) -> None:
        self.measured.losses.read(values, frame)

    def loss_stands_out(self, root: Any, value: float, frame: FrameType) -> None:
        began = thread_time()
        series = self.measured.losses.of(frame)
        if series is not None:
            self._take_value(series, root, value, frame)
        if self._watching:
            governor.governor.charge("steep", self.name, min(thread_time() - began, MAX_STEEP_SECONDS))

    def gpu_loss(self, root: Any, frame: FrameType, plain: Any) -> None:
        self.measured.copies.collect()
        losses = self.measured.losses
        series = losses.of(frame)
        if series is None:
            return
        if not losses.read_later(series, plain, lambda late: self._tell_if(self._nan.goes_on(late))):
            self._take_value(series, root, plain.item(), frame)
        else:
            self._tell_if(self._nan.graph_comes(root))

    def _take_value(self, series: Series, root: Any, value: float, frame: FrameType) -> None:
        """A value whose graph is there."""
        measured = self.measured
        self._tell_if(self._nan.graph_comes(root))
        measured.losses.take(series, value)
        if not isfinite(value):
            self._tell_if(self._nan.look(series, root, value, frame))
            return
        if series.far:
            measured.stood_out(series, value, flight.steps(), loading.batches(), frame)
        if self._watching or measured.copies.exact:
            measured.steep.look(root, series, frame)

    # --- the backward pass -------------------------------------------------------------------------------------------

    def derivative_taken(self, root: Any, frame: FrameType) -> None:
        self._backward.derivative_taken(root, frame)

    def gradients_asked(self, leaves: list[Any]) -> None:
        self._backward.asked = leaves

    def before_backward(self, root: Any, frame: FrameType) -> None:
        """Where there is time; of a step whose modules are observed in any case, from what is kept for that."""
        if governor.allows(self.name):
            self._look_at(root, frame)
        elif self.measured.observed.is_young():
            began = thread_time()
            self._look_at(root, frame)
            governor.governor.charge(observed_steps.ACCOUNT, self.name, thread_time() - began)
        else:
            self._missed(frame)

    def _look_at(self, root: Any, frame: FrameType) -> None:
        measured = self.measured
        asked = self._backward.take_asked()
        if root is None:
            return
        if root.grad_fn is None:
            if root.requires_grad:
                self._backward.of_leaf(frame)
            return
        with torch.no_grad():
            self._read(root, frame, asked)
        if measured.own_update.is_likely() and measured.losses.passes() >= measured.next_telling:
            measured.own_update.look(frame)
            measured.tell()
        elif not measured.optimizers.built and not measured.inventory.parameters():
            measured.inventory.look()  # there may be no time for another look before the model is gone

    def _read(self, root: Any, frame: FrameType, asked: list[Any]) -> None:
        measured = self.measured
        self._backward.read(root.grad_fn, frame, asked)
        if measured.own_clips is None and measured.losses.passes() >= MIN_LOSSES:
            from .own_clips import OwnClips

            measured.own_clips = OwnClips(measured.losses, measured.parameters, measured.clips, measured.saved)
        if measured.own_clips is not None:
            measured.own_clips.before(root, frame)
        if not measured.saved.hooked and not measured.compiled:
            measured.dead_terms.look(root, frame)
            self._nan.trace_dead_term()
        self._backward.look_for_still_copy(frame)
        series = measured.losses.of(frame)
        if series is not None and not self._watching and (not gpu.away(root) or measured.copies.exact):
            measured.steep.look(root, series, frame)

    def observes(self) -> bool:
        """The modules of this step are watched."""
        return self.measured.observed.now is not None

    def _missed(self, frame: FrameType) -> None:
        measured = self.measured
        self._backward.take_asked()
        if measured.own_update.is_likely() and measured.losses.passes() >= FIRST_STEPS:
            measured.own_update.look_for_spent(frame)  # once, however little time there is
        self._stop_clips()
        measured.optimizers.missed()
        measured.observed.missed()

    # --- steps -------------------------------------------------------------------------------------------------------

    def optimizer_built(self, optimizer: Any, frame: FrameType, counts: Any) -> None:
        self.measured.counts = counts
        # Its steps count from 0: a second stage is looked at anew.
        self.measured.next_telling = self._next_look = FIRST_STEPS
        site = self.measured.optimizers.note_built(optimizer, frame)
        if site is not None:
            self.measured.lines.files.append(site[0])

    def before_step(self, optimizer: Any, closure: bool = False) -> None:
        """Where the time for all the rest is spent, within what is kept for updates alone."""
        kept = not governor.allows(self.name)
        if not kept or governor.allows("updates"):
            began = thread_time()
            self.measured.updates.before(optimizer, closure)
            if kept:
                governor.governor.charge("updates", self.name, AND_AFTER * (thread_time() - began))

    def after_backward(self) -> None:
        by_hand = stepping.by_hand.active or not self.measured.optimizers.built
        if by_hand and self._reads_gradients():
            self.measured.updates.accumulated()
        if self.measured.own_clips is not None:
            self.measured.own_clips.after()

    def gradients_given(self, leaves: list[Any], gradients: tuple[Any, ...]) -> None:
        if self.measured.own_clips is not None:
            self.measured.own_clips.given(gradients)
        if self._reads_gradients():
            self.measured.updates.given(leaves, gradients)

    def _stop_clips(self) -> None:
        if self.measured.own_clips is not None:
            self.measured.own_clips.stop()

    def _reads_gradients(self) -> bool:
        """Of an update written by hand; as long as none is made, every pass comes here."""
        return stepping.by_hand.made > 0 or governor.allows(self.name)

    def after_step(self, optimizer: Any, count: int) -> None:
        """`optimizer`: None where the script writes its updates out itself; `count`: so many has it made."""
        measured = self.measured
        self._stop_clips()
        self._tell_if(self._nan.stepped())
        entry = measured.optimizers.known(optimizer)
        entry.steps = count
        if optimizer is not None:
            entry.note_rate(optimizer, max(0, flight.steps() - 1))  # the hook has counted this one
            entry.stepped()
        elif stepping.by_hand.leftovers is not None:
            entry.stale, entry.checked = stepping.by_hand.leftovers.counts()
        measured.updates.after(optimizer, entry)
        measured.observed.after_step(optimizer)
        if count >= self._next_look:
            self._next_look = count + max(FIRST_STEPS, count // 2)
            measured.inventory.look()
        if count >= measured.next_telling:
            measured.tell()

    def trained(self) -> list[Any]:
        """Parameters that are still there, and their gradients."""
        living = [entry.ref() for entry in self.measured.parameters.known.values()]
        return [each for one in living if one is not None for each in (one, one.grad) if each is not None]

    def sampling_changed(self, full: bool) -> None:
        if not full:
            self._stop_clips()
        self.measured.observed.sampling_changed(full)

    # --- schedules, scaler, compiler ---------------------------------------------------------------------------------

    def gradients_clipped(self, norm: Any, limit: Any, calls: int) -> None:
        self.measured.clips.note(norm, limit, calls, self.measured.scaler.scaled)

    def scheduler_stepped(self, scheduler: Any, counts: Any) -> None:
        self.measured.schedulers.stepped(scheduler, counts)

    def scaler_scaled(self, scaler: Any) -> None:
        self.measured.scaler.scaling(scaler)

    def scaler_unscaled(self, scaler: Any) -> None:
        self.measured.scaler.scaled = False

    def scaler_updated(self, scaler: Any) -> None:
        self.measured.scaler.updated(scaler)

    def model_compiled(self) -> None:
        self.measured.observed.compiled = True
        self.measured.observed.end()

    def saved_tensor_hooks_used(self) -> None:
        self.measured.saved.hooked = True

    # --- telling -----------------------------------------------------------------------------------------------------

    def _tell_if(self, news: bool) -> None:
        if news:
            self.measured.tell(news=True)

    def asked_loops(self, frame: FrameType) -> None:
        """Whether a loop can still end depends on how its loss goes, up to this moment."""
        if self.measured.losses.series:
            self.measured.losses.settle()
            self.measured.write()

    def last(self) -> None:
        measured = self.measured
        self._stop_clips()
        self._nan.stop()  # while the interpreter ends, it would be called with half of its names gone
        with governor.Reading():
            measured.losses.settle()
            if not measured.optimizers.stepping() and not measured.losses.series:
                return
            measured.copies.last()
            if not measured.optimizers.stepping() and measured.losses.passes() >= FIRST_STEPS:
                measured.own_update.look(None)
            if not measured.inventory.gone:
                measured.inventory.look()
            self.measured.write()

    def forget(self) -> None:
        """What its parent trains must not be freed here, for it may be on a GPU."""
        self.remove()
        copies = self.measured.copies
        copies.forget()
        copies.abandon(dict(self.__dict__))
        self._begin(copies)

    def remove(self) -> None:
        self._stop_clips()
        self.measured.observed.end()
        self._nan.stop()
