"""All that is measured of how a training learns, each thing by a part of its own, and the record of it."""

from __future__ import annotations

from typing import Any

from ... import flight, governor, gpu
from ...records.learning import FlatOperation, Learning
from ...records.numerics import Birth, DrawnBatch, Spike
from ..numerics.steep import Steep
from .activations import Activations
from .backward_returns import BackwardReturns
from .dead_terms import DeadTerms
from .graph_reading import SavedTensors
from .inventory import Inventory
from .loss_head import Heads
from .losses import Losses, Series
from .naming import Names
from .observed_steps import ObservedSteps
from .optimizers import Optimizers
from .own_update import OwnUpdate
from .parameters import Parameters
from .schedules import Clips, Scaler, Schedulers
from .script_lines import ScriptLines
from .updates import Updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from .still_copy import StillCopies
    from .term_cut import TermCuts


class Measurements:
    def __init__(self, copies: gpu.Copies) -> None:
        self.copies, self.saved = copies, SavedTensors()
        self.lines, self.names = ScriptLines(), Names()
        self.parameters = Parameters(copies)
        self.optimizers = Optimizers(self.parameters, copies)
        self.updates = Updates(self.parameters, self.optimizers, copies)
        self.observed = ObservedSteps(self.parameters, self.optimizers, self.names, copies)
        self.activations = Activations(self.saved, self.names, copies)
        self.heads = Heads(self.saved, copies)
        self.schedulers, self.clips, self.scaler = Schedulers(), Clips(copies), Scaler(copies)
        self.inventory = Inventory(self.parameters, self.optimizers, self.activations, self.names, self.lines, copies)
        self.losses = Losses(copies, self.stood_out)
        self.spikes: list[Spike] = []
        self.births: list[Birth] = []  # of NaN
        self.steep = Steep(self.saved)
        self.flat: FlatOperation | None = None
        self.returns, self.dead_terms = BackwardReturns(), DeadTerms()
        self.terms: TermCuts | None = None  # a term of a loss has no graph
        self.own_update = OwnUpdate(self.losses, self.optimizers)
        self.still: StillCopies | None = None
        self.compiled = False
        self.counts: Any = None  # by the identity of an optimizer: its steps, and how often its gradients were cleared

    def stood_out(
        self, series: Series, value: float, step: int, batches: list[DrawnBatch] | None, frame: FrameType | None = None
    ) -> None:
        """`frame`: None where it stood out some steps ago; its batch was noted then, if there was one at hand."""
        from ..numerics import spikes

        if len(self.spikes) < spikes.MAX_SPIKES:
            rows = spikes.large_rows(frame) if frame is not None else None
            self.spikes.append(spikes.describe(series, value, step, batches or [], rows))

    def record(self) -> Learning:
        if self.counts is not None:
            self.optimizers.count(self.counts)
        inventory, observed = self.inventory, self.observed
        return Learning(
            steps=flight.steps(),
            backwards=flight.state[flight.BACKWARDS],
            losses=[series.record() for series in self.losses.series.values()],
            optimizers=[entry.record(number) for number, entry in enumerate(self.optimizers.stepping())],
            built=inventory.built(),
            schedulers=self.schedulers.records(),
            parameters=inventory.parameters(),
            heads=self.heads.records(),
            activations=[
                layer.record(number, inventory.sites.get(number))
                for number, layer in sorted(self.activations.layers.items())
            ],
            clears=self.counts.all_clears if self.counts is not None else 0,
            clips=self.clips.record(),
            scaler=self.scaler.record(),
            births=self.births,
            spikes=self.spikes,
            steep=self.steep.last,
            flat=self.flat,
            kept_in=inventory.kept_in,
            strays=inventory.strays,
            first_weights=inventory.first_weights,
            observed=observed.observed,
            modes=observed.modes.by_root,
            cut=observed.cut,
            state_cut=observed.state_cut,
            term_cut=self.terms.record() if self.terms is not None else None,
            dead_term=self.dead_terms.record(),
            lost_update=self.own_update.lost,
            torn=self.returns.torn or observed.views.record(),
            still_copy=self.still.record() if self.still is not None else None,
            passing=inventory.passing,
            leaf_losses=observed.leaf_losses,
            eval_site=self.lines.eval_call() if observed.modes.idle else None,
            compiled=self.compiled,
            on_gpu=self.copies.used,
            cost=governor.governor.spent,
        )
