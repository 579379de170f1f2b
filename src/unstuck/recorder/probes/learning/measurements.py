"""All that is measured of how a training learns, each thing by a part of its own, and the record of it.

Each record is the whole: the latest is all a rule needs. It is written when there is news, else ever more rarely.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from ... import flight, governor, gpu, journal
from ... import layout as at
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

    from .own_clips import OwnClips
    from .still_copy import StillCopies
    from .term_cut import TermCuts

FIRST_STEPS = 8  # until the first telling; then at each time half as many again
MIN_PAUSE, MAX_PAUSE = 1.0, 60.0  # seconds between two tellings; within these, half as long as the training has run


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
        self.own_clips: OwnClips | None = None  # the script may clip without `clip_grad_norm_`
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
        self.next_telling = FIRST_STEPS
        """Steps until it is told once more."""
        self._told_at = self._first_told_at = 0.0

    def stood_out(
        self, series: Series, value: float, step: int, batches: list[DrawnBatch] | None, frame: FrameType | None = None
    ) -> None:
        """`frame`: None where it stood out some steps ago; its batch was noted then, if there was one at hand."""
        from ..numerics import spikes

        if len(self.spikes) < spikes.MAX_SPIKES:
            rows = spikes.large_rows(frame) if frame is not None else None
            self.spikes.append(spikes.describe(series, value, step, batches or [], rows))

    def tell(self, *, news: bool = False) -> None:
        """Write the record; without `news`, only if the last time was long enough ago."""
        steps = max((entry.steps for entry in self.optimizers.stepping()), default=self.losses.passes())
        now = monotonic()
        pause = min(MAX_PAUSE, max(MIN_PAUSE, 0.5 * (self._told_at - self._first_told_at)))
        if not news and now - self._told_at < pause:
            self.next_telling = steps + 1 + steps // 50
            return
        self._first_told_at = self._first_told_at or now
        self._told_at, self.next_telling = now, steps + max(FIRST_STEPS, steps // 2)
        self.inventory.look()
        self.write()

    def write(self) -> None:
        journal.replace(self.record(), at.LEARNING)

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
