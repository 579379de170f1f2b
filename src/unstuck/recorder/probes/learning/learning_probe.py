"""Everything measured of how a training learns, gathered in sampled steps and told as one record, ever more rarely.

Each telling is the whole: the latest is all a rule needs. What is needed where something is wrong is imported then.
"""

from __future__ import annotations

from math import isfinite
from time import monotonic, thread_time
from types import FrameType
from typing import Any

import torch

from ... import dispatch, flight, governor, gpu, journal, loading, stepping
from ... import layout as at
from ...probe import Probe
from ...records.learning import FlatOperation, Learning, LostUpdate
from ...records.numerics import Birth, DrawnBatch, Spike
from ..numerics.steep import Steep
from . import graph_reading, observed_steps, script_lines
from .activations import Activations
from .backward_returns import BackwardReturns
from .dead_terms import DeadTerms
from .graph_reading import Graph
from .inventory import Inventory
from .loss_head import Heads
from .losses import Losses, Series
from .naming import Names
from .observed_steps import ObservedSteps
from .optimizers import Optimizers
from .parameters import Parameters
from .schedules import Clips, Scaler, Schedulers
from .script_lines import ScriptLines
from .updates import Updates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..numerics.computed_values import Returns
    from ..numerics.nan_origin import NanOrigins, Tracing
    from .still_copy import StillCopies
    from .term_cut import Derivatives, TermCuts

MAX_DERIVATIVES = 64  # lines of the script that take one
FIRST_STEPS = 8  # until the first telling; then at each time half as many again
MIN_PAUSE, MAX_PAUSE = 1.0, 60.0  # seconds between two tellings; within these, half as long as the training has run
MAX_LOST = 64
TOLD_AGAIN = 16  # losses that are NaN or infinite, after which what became of the training is told once more
MAX_STEEP_SECONDS = 0.002  # of one look at a slope, that count as such: its line is looked up in the source only once
FIRST_STILL, OFTEN_STILL = 16, 8  # backward passes until the first look at what nothing trains; between two looks
AND_AFTER = 2  # what is copied before a step is compared after it, at the same cost
MIN_DEAD = 4  # looks at a term whose gradient died, after which its line is looked for
NOTHING_WITHIN = (float("inf"), float("-inf"))


class LearningProbe(Probe):
    name = "learning"

    def __init__(self) -> None:
        self._begin(gpu.copies)

    def _begin(self, copies: gpu.Copies) -> None:
        self.copies = copies
        self.saved = graph_reading.SavedTensors()
        self.lines, self.names = ScriptLines(), Names()
        self.parameters = Parameters(copies)
        self.optimizers = Optimizers(self.parameters, copies)
        self.updates = Updates(self.parameters, self.optimizers, copies)
        self.observed = ObservedSteps(self.parameters, self.optimizers, self.names, copies)
        self.activations = Activations(self.saved, self.names, copies)
        self.heads = Heads(self.saved, copies)
        self.schedulers, self.clips, self.scaler = Schedulers(), Clips(copies), Scaler(copies)
        self.inventory = Inventory(self.parameters, self.optimizers, self.activations, self.names, self.lines, copies)
        self.losses = Losses(copies, self._stood_out)
        self.spikes: list[Spike] = []
        self.steep = Steep(self.saved)
        self.origins: NanOrigins | None = None
        self.tracing: Tracing | None = None
        """The line of an operation is looked for: the graph of the next loss is wanted, whatever its value."""
        self.returns: Returns | None = None  # a function that computes NaN outside of any graph is looked for
        self.flat: FlatOperation | None = None
        self.returns_kept = BackwardReturns()
        self.dead_terms = DeadTerms()
        self.terms: TermCuts | None = None  # a term of a loss has no graph
        self._derivatives: Derivatives = {}  # taken without a graph, with the weights in what they were taken of
        self.lost_update: LostUpdate | None = None
        self.still: StillCopies | None = None
        self.compiled = False
        self._counts: Any = None  # by the identity of an optimizer: its steps, and how often its gradients were cleared
        self._named = 0  # parameters known when names were last looked for
        self._spent: list[str] | None = None  # iterators at their end; None: not looked for
        self._next_still = FIRST_STILL
        """Backward passes until a copy that nothing changes is looked for."""
        self._searched = False  # an update that is lost was looked for in the source
        self._asked: list[Any] = []  # leaves for whose gradients `autograd.grad` is called
        self._watching = False  # each loss is handed over with its graph
        self._next_telling = self._next_look = FIRST_STEPS
        """Steps until the next telling, and until who owns what is looked at once more."""
        self._told_at = self._first_told_at = 0.0

    # --- losses ------------------------------------------------------------------------------------------------------

    def limits(self) -> tuple[float, float]:
        """Values of a loss between these need not be handed over until the next sampled step."""
        steep = any(series.steep for series in self.losses.series.values())
        self._watching = self.tracing is not None or (steep and governor.allows("steep"))
        return NOTHING_WITHIN if self._watching else self.losses.limits()

    def losses_read(self, values: list[float], frame: FrameType | None) -> None:
        self.losses.read(values, frame)

    def loss_stands_out(self, root: Any, value: float, frame: FrameType) -> None:
        began = thread_time()
        series = self.losses.of(frame)
        if series is not None:
            self._take_value(series, root, value, frame)
        if self._watching:
            governor.governor.charge("steep", self.name, min(thread_time() - began, MAX_STEEP_SECONDS))

    def gpu_loss(self, root: Any, frame: FrameType, plain: Any) -> None:
        self.copies.collect()
        series = self.losses.of(frame)
        if series is None:
            return
        if not self.losses.read_later(series, plain, self._broken_again):
            self._take_value(series, root, plain.item(), frame)
        else:
            self._trace(root)

    def _take_value(self, series: Series, root: Any, value: float, frame: FrameType) -> None:
        """A value whose graph is there."""
        self._trace(root)
        self.losses.take(series, value)
        if not isfinite(value):
            self._broken(series, root, value, frame)
            return
        if series.far:
            self._stood_out(series, value, flight.steps(), loading.batches(), frame)
        if self._watching or self.copies.exact:
            self.steep.look(root, series, frame)

    def _stood_out(
        self, series: Series, value: float, step: int, batches: list[DrawnBatch] | None, frame: FrameType | None = None
    ) -> None:
        """`frame`: None where it stood out some steps ago; its batch was noted then, if there was one at hand."""
        from ..numerics import spikes

        if len(self.spikes) < spikes.MAX_SPIKES:
            rows = spikes.large_rows(frame) if frame is not None else None
            self.spikes.append(spikes.describe(series, value, step, batches or [], rows))

    def _broken(self, series: Series, root: Any, value: float, frame: FrameType) -> None:
        """The first time: look for where NaN was born, while the graph is there. The second: the training goes on, so
        its next step can show the line."""
        if series.nonfinite > 2:
            self._broken_again(series)
            return
        from ..numerics import nan_origin

        self.origins = self.origins or nan_origin.NanOrigins(self.saved, self.names, self.parameters)
        if series.nonfinite == 1:
            if self.names.stale:
                self.names.find(frame)
            late = gpu.away(root) and not self.copies.exact
            self.origins.look(root, value, frame, series, self.steep.last, late=late)
            self._look_at_returns(self.origins.of(series), frame)
            self.tell(news=True)
            return
        birth = self.origins.of(series)
        if birth is not None and self.tracing is None and not self.compiled and not self.saved.hooked:
            self._follow(nan_origin.Tracing([*birth.operations[:2], *birth.outside[:1]], birth))

    def _follow(self, tracing: Tracing) -> None:
        self.tracing = tracing if tracing.on else None

    def _look_at_returns(self, birth: Birth | None, frame: FrameType) -> None:
        from ..numerics import computed_values

        if birth is None or birth.late or not computed_values.is_wanted(birth):
            return
        birth.computed = computed_values.warned(frame)  # type: ignore[misc]  # it is not written yet
        if birth.computed is None and self.returns is None:
            self.returns = computed_values.Returns(birth)

    def _broken_again(self, series: Series) -> None:
        if series.nonfinite == TOLD_AGAIN or (self.returns is not None and self.returns.ended()):
            self.tell(news=True)

    def _trace(self, root: Any) -> None:
        if self.tracing is not None:
            found = self.tracing.look(root)
            if not self.tracing.on:
                self.tracing = None
            if found:
                self.tell(news=True)

    # --- the backward pass -------------------------------------------------------------------------------------------

    def derivative_taken(self, root: Any, frame: FrameType) -> None:
        """Which weights are in what it is taken of."""
        here = script_lines.user_frame(frame)
        if here is not None and root.grad_fn is not None and len(self._derivatives) < MAX_DERIVATIVES:
            weights = filter(self._lasts, graph_reading.behind(root.grad_fn))
            self._derivatives[here.f_code.co_filename, here.f_lineno] = frozenset(map(id, weights))

    def _lasts(self, leaf: Any) -> bool:
        """It is no input, which comes and goes."""
        entry = self.parameters.get(leaf)
        return type(leaf) is torch.nn.Parameter or (entry is not None and entry.in_graph > 1)

    def gradients_asked(self, leaves: list[Any]) -> None:
        """A graph of many nodes ends in them, too, though it is not read to its end."""
        self._asked = leaves

    def before_backward(self, root: Any, frame: FrameType) -> None:
        """Where there is time; of a step whose modules are observed in any case, from what is kept for that."""
        if governor.allows(self.name):
            self._look_at(root, frame)
        elif self.observed.is_young():
            began = thread_time()
            self._look_at(root, frame)
            governor.governor.charge(observed_steps.ACCOUNT, self.name, thread_time() - began)
        else:
            self._missed(frame)

    def _look_at(self, root: Any, frame: FrameType) -> None:
        """Read the graph."""
        asked, self._asked = self._asked, []  # not kept: that they are gone tells that others have taken their place
        if root is None:
            return
        if root.grad_fn is None:
            if root.requires_grad:
                self._name_all(frame)
                self.optimizers.at_backward()
                self.observed.nothing_reached()
            return
        with torch.no_grad():
            self._read(root, frame, asked)
        if self._idle() and self._passes() >= self._next_telling:
            self._look_for_update(frame)
            self.tell()
        elif not self.optimizers.built and not self.inventory.parameters():
            self.inventory.look()  # there may be no time for another look before the model is gone

    def _idle(self) -> bool:
        """No optimizer steps; of an update written by hand the first may have worked."""
        return not self.optimizers.stepping() or (flight.steps() <= 1 and not self.optimizers.built)

    def _passes(self) -> int:
        """Backward passes, or calls of `autograd.grad`."""
        return max(flight.state[flight.BACKWARDS], *(series.count for series in self.losses.series.values()), 0)

    def _look_for_update(self, frame: FrameType | None) -> None:
        """Nothing steps: the script may have an update of its own that goes wrong."""
        if not self._searched and not self.optimizers.built:
            from . import lost_update, used_up_update

            self._searched = True
            self._look_for_spent(frame)
            sites = [series.site[0] for series in self.losses.series.values() if series.site is not None]
            files = dict.fromkeys([*sites, *script_lines.user_files(frame)])
            self.lost_update = used_up_update.find(self._spent, files) or lost_update.find(files)

    def _look_for_spent(self, frame: FrameType | None) -> None:
        """Iterators at their end that the training holds: while its frames are there."""
        if self._spent is None and frame is not None:
            from . import used_up_update

            self._spent = used_up_update.spent_names(frame)

    def _look_for_still_copy(self, frame: FrameType) -> None:
        """Where there are parameters that nothing trains, a line of the script may be meant to change them."""
        if self.still is None:
            from . import still_copy

            self.still = still_copy.StillCopies()
        held = self.optimizers.holders()
        trained = {key for key, entry in self.parameters.known.items() if entry.in_graph or key in held}
        self.still.look(self.names, trained, frame)

    def _read(self, root: Any, frame: FrameType, asked: list[Any]) -> None:
        graph = graph_reading.read(root.grad_fn)
        self.compiled = self.compiled or graph.compiled
        known = set(map(id, graph.leaves))
        more = [leaf for leaf in asked if id(leaf) not in known] if graph.capped else []
        if not self._for_itself(asked):
            self.parameters.reached([*graph.leaves, *more], graph)
        self._name_all(frame)
        self.optimizers.at_backward()
        self.updates.at_first_backward()
        self.observed.at_backward(graph.leaves, whole=not graph.capped, root=root.grad_fn)
        self.activations.note(graph)
        self.observed.views.look(graph.views, frame)
        self.returns_kept.look(frame)
        if graph.flat and not graph.capped and self.flat is None:
            self._note_flat(root.grad_fn, graph, frame)
        if not loading.everything():
            if (data := graph_reading.data_of(graph, self.saved)) is not None:
                dispatch.emit("graph_given", data, frame, self.observed.plain)
            elif self.observed.plain and (rows := graph_reading.rows_asked(graph, self.saved)):
                dispatch.emit("rows_asked", rows, frame)
        self.heads.note(root.grad_fn, frame)
        self._look_at_terms(root.grad_fn, graph.leaves, frame)
        if not self.saved.hooked and not self.compiled:
            self._look_for_dead_term(root, frame)
        if self._passes() >= self._next_still:
            self._next_still *= OFTEN_STILL
            self._look_for_still_copy(frame)
        series = self.losses.of(frame)
        if series is not None and not self._watching and (not gpu.away(root) or self.copies.exact):
            self.steep.look(root, series, frame)

    def _look_at_terms(self, root: Any, leaves: list[Any], frame: FrameType) -> None:
        """Is there one without a graph? Inputs that want a gradient, for a derivative, come and go."""
        kinds = {type(leaf) for leaf in leaves}

        def trained(leaf: Any) -> bool:
            return type(leaf) is torch.nn.Parameter or (torch.nn.Parameter not in kinds and self._lasts(leaf))

        if self.terms is None and graph_reading.lacks_a_term(root, trained, bool(self._derivatives)):
            from . import term_cut

            self.terms = term_cut.TermCuts(self._derivatives)
        if self.terms is not None and any(map(trained, leaves)):
            self.terms.look(root, frame, trained, {id(leaf) for leaf in leaves if trained(leaf)})

    def _look_for_dead_term(self, root: Any, frame: FrameType) -> None:
        self.dead_terms.look(root, frame)
        term = self.dead_terms.record()
        if term is not None and term.seen >= MIN_DEAD and not term.sought and self.tracing is None:
            from ..numerics import nan_origin

            term.sought = True  # type: ignore[misc]  # it is written anew
            self._follow(nan_origin.Tracing([term]))

    def _for_itself(self, asked: list[Any]) -> bool:
        """Gradients of what optimizers have, asked for by `autograd.grad` (an inner step, say): none is left there."""
        held = self.optimizers.holders() if asked else ()
        return bool(asked) and all(id(leaf) in held for leaf in asked)

    def observes(self) -> bool:
        """The modules of this step are watched."""
        return self.observed.now is not None

    def _missed(self, frame: FrameType) -> None:
        self._asked = []
        if self._spent is None and self._idle() and self._passes() >= FIRST_STEPS and not self.optimizers.built:
            self._look_for_spent(frame)  # once, however little time there is: it is short
        self.optimizers.missed()
        self.observed.missed()

    def _name_all(self, frame: FrameType) -> None:
        """Once when the first graph is read, and again where modules or parameters came that have no name."""
        known = self.parameters.known
        more = len(known) > 2 * self._named and any(key not in self.names.names for key in known)
        if self.names.stale or more:
            self._named = len(known)
            self.names.find(frame)

    def _note_flat(self, root: Any, graph: Graph, frame: FrameType) -> None:
        leaves = graph_reading.only_behind(root, graph.flat)
        draws = graph_reading.drawn(graph.flat) if not leaves else None
        if draws is not None:  # what is behind it may learn from another part of the loss
            leaves = graph_reading.behind(draws)
        lost = [name for leaf in leaves if (name := self.names.name(leaf))]
        if lost:
            first, also = draws or graph.flat[0], draws is not None
            operation, shape = graph_reading.flat_operation(first) or "", graph_reading.shape_of(first) or []
            site = script_lines.only_line(operation, frame)
            self.flat = FlatOperation(
                operation=operation, lost=lost[:MAX_LOST], site=site, other_ways=also, shape=shape
            )

    # --- steps -------------------------------------------------------------------------------------------------------

    def optimizer_built(self, optimizer: Any, frame: FrameType, counts: Any) -> None:
        self._counts = counts
        self._next_telling = self._next_look = FIRST_STEPS  # its steps count from 0: a second stage is looked at anew
        site = self.optimizers.note_built(optimizer, frame)
        if site is not None:
            self.lines.files.append(site[0])

    def before_step(self, optimizer: Any, closure: bool = False) -> None:
        """Where the time for all the rest is spent, within what is kept for updates alone."""
        kept = not governor.allows(self.name)
        if not kept or governor.allows("updates"):
            began = thread_time()
            self.updates.before(optimizer, closure)
            if kept:
                governor.governor.charge("updates", self.name, AND_AFTER * (thread_time() - began))

    def after_backward(self) -> None:
        if self._reads_gradients():
            self.updates.accumulated()

    def gradients_given(self, leaves: list[Any], gradients: tuple[Any, ...]) -> None:
        if self._reads_gradients():
            self.updates.given(leaves, gradients)

    def _reads_gradients(self) -> bool:
        """Of an update written by hand; as long as none is made, every pass comes here."""
        return stepping.by_hand.made > 0 or governor.allows(self.name)

    def after_step(self, optimizer: Any, count: int) -> None:
        """`optimizer`: None where the script writes its updates out itself; `count`: so many has it made."""
        if self.tracing is not None:
            self.tracing.stepped()
            self.tracing = self.tracing if self.tracing.on else None
        if self.returns is not None and self.returns.stepped():
            self.tell(news=True)
        entry = self.optimizers.known(optimizer)
        entry.steps = count
        if optimizer is not None:
            entry.note_rate(optimizer, max(0, flight.steps() - 1))  # the hook has counted this one
            entry.stepped()
        elif stepping.by_hand.leftovers is not None:
            entry.stale, entry.checked = stepping.by_hand.leftovers.counts()
        self.updates.after(optimizer, entry)
        self.observed.after_step(optimizer)
        if count >= self._next_look:
            self._next_look = count + max(FIRST_STEPS, count // 2)
            self.inventory.look()
        if count >= self._next_telling:
            self.tell()

    def trained(self) -> list[Any]:
        """Parameters that are still there, and their gradients."""
        living = [entry.ref() for entry in self.parameters.known.values()]
        return [each for one in living if one is not None for each in (one, one.grad) if each is not None]

    def sampling_changed(self, full: bool) -> None:
        self.observed.sampling_changed(full)

    # --- schedules, scaler, compiler ---------------------------------------------------------------------------------

    def gradients_clipped(self, norm: Any, limit: Any, calls: int) -> None:
        self.clips.note(norm, limit, calls, self.scaler.scaled)

    def scheduler_stepped(self, scheduler: Any, counts: Any) -> None:
        self.schedulers.stepped(scheduler, counts)

    def scaler_scaled(self, scaler: Any) -> None:
        self.scaler.scaling(scaler)

    def scaler_unscaled(self, scaler: Any) -> None:
        self.scaler.scaled = False

    def scaler_updated(self, scaler: Any) -> None:
        self.scaler.updated(scaler)

    def model_compiled(self) -> None:
        self.observed.compiled = True
        self.observed.end()

    def saved_tensor_hooks_used(self) -> None:
        self.saved.hooked = True

    # --- telling -----------------------------------------------------------------------------------------------------

    def tell(self, *, news: bool = False) -> None:
        """Write the record; without `news`, only if the last time was long enough ago."""
        steps = max((entry.steps for entry in self.optimizers.stepping()), default=self._passes())
        now = monotonic()
        pause = min(MAX_PAUSE, max(MIN_PAUSE, 0.5 * (self._told_at - self._first_told_at)))
        if not news and now - self._told_at < pause:
            self._next_telling = steps + 1 + steps // 50
            return
        self._first_told_at = self._first_told_at or now
        self._told_at, self._next_telling = now, steps + max(FIRST_STEPS, steps // 2)
        self.inventory.look()
        journal.replace(self.record(), at.LEARNING)

    def asked_loops(self, frame: FrameType) -> None:
        """Whether a loop can still end depends on how its loss goes, up to this moment."""
        if self.losses.series:
            self.losses.settle()
            journal.replace(self.record(), at.LEARNING)

    def last(self) -> None:
        if self.returns is not None:  # while the interpreter ends, it would be called with half of its names gone
            self.returns.stop()
        with governor.Reading():
            self.losses.settle()
            if not self.optimizers.stepping() and not self.losses.series:
                return
            self.copies.last()
            if not self.optimizers.stepping() and self._passes() >= FIRST_STEPS:
                self._look_for_update(None)
            if not self.inventory.gone:
                self.inventory.look()
            journal.replace(self.record(), at.LEARNING)

    def record(self) -> Learning:
        if self._counts is not None:
            self.optimizers.count(self._counts)
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
            clears=self._counts.all_clears if self._counts is not None else 0,
            clips=self.clips.record(),
            scaler=self.scaler.record(),
            births=self.origins.births if self.origins is not None else [],
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
            lost_update=self.lost_update,
            torn=self.returns_kept.torn or observed.views.record(),
            still_copy=self.still.record() if self.still is not None else None,
            passing=inventory.passing,
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
        if self.returns is not None:
            self.returns.stop()
        if self.tracing is not None:
            self.tracing.stop()
            self.tracing = None
