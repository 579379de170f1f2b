"""One training step seen from its modules, now and then: which were called, in which mode, and with a graph or without.

torch's global module hooks are in place for that step only. Where a parameter that an optimizer has is never reached
by a loss, a few steps are looked at more closely (`cut_search`): between which two modules the graph ends, and at which
line. Never where a compiler is in use.
"""

from __future__ import annotations

import sys
import weakref
from itertools import islice
from types import FrameType
from typing import Any

import torch

from ... import dispatch, flight, governor, gpu, guard, hiding, objects, stepping, tensors
from ...hooks import modules as hooks
from ...records.learning import GraphCut, StateCut
from . import naming, script_lines
from .exchanged_views import ExchangedViews
from .module_calls import Call, Modes, Observation
from .naming import Names
from .optimizers import Optimizers, parameters_of
from .parameters import Parameters, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cut_search import Fingerprint

FORWARD = "forward"  # a fault here switches only this part off
ACCOUNT = "observed"  # what calls of modules cost goes there
MAX_CALLS = 3000
MIN_CALLS = 4  # in a step, that a layer may have been called again and again
MAX_OBSERVED = 200  # steps
MAX_READ = 4  # backward passes of one, that are looked at however little time there is
MAX_CLOSE, MAX_TRIES = 3, 12  # closer looks that found something, and closer looks in all
CLOSE_AFTER = 3  # sampled steps without a gradient
MIN_UNREACHED = 2  # observed steps
RAW_STEPS, RAW_LAYERS = 3, 6  # observed steps, and layers in each, of which it is read what data they are given
MAX_MADE = 4  # results of a call whose nodes are noted
MAX_FINGERPRINTS, MAX_FRAMES, MAX_DEPTH = 4, 12, 3


CALLING = (f"{__package__}.", torch.nn.Module.__module__, torch.nn.Sequential.__module__)
"""Modules between a line that calls one of torch's modules and our hook."""


class ObservedSteps:
    def __init__(self, parameters: Parameters, optimizers: Optimizers, names: Names, copies: gpu.Copies) -> None:
        self._parameters, self._optimizers, self._names = parameters, optimizers, names
        self.now: Observation | None = None
        self.observed = self.leaf_losses = 0
        self.modes = Modes(copies)
        self.cut: GraphCut | None = None
        self.state_cut: StateCut | None = None
        self._unused = False  # of many calls of a layer the loss reached few
        self.compiled = False  # a compiled module was made
        self.plain = False  # a whole step was made without any module: its model is of plain tensors
        self._due = 2
        self._by_hand = False  # a step without an optimizer is told at the backward pass after it, about to be read
        self._begins = False  # … and the one to be observed begins after that
        self._begun_after = -1  # the optimizer after whose step the last observation began
        self._unreached: dict[int, tuple[tuple[weakref.ref[Any], Any], int]] = {}
        """Where no optimizer was made: parameters that a step uses and no loss reaches; as they are, how often so."""
        self._cuts = self._tries = 0
        self._called_elsewhere = False  # modules cut off are called before the step of another optimizer: a GAN's fakes
        self._handles: list[Any] = []
        self.views = ExchangedViews()

    # --- when a step is observed -------------------------------------------------------------------------------------

    def after_step(self, optimizer: Any) -> None:
        """After an optimizer step: an observation ends, or one begins where it is due and the next step is sampled."""
        if optimizer is None:
            self._by_hand = True
        else:
            self._turn(optimizer)

    def _turn(self, optimizer: Any) -> None:
        if self.now is not None:
            self._finish(optimizer)
        made = flight.steps() + (optimizer is None)
        if made < flight.FULL_STEPS or not made & flight.OFTEN:
            self._begin_if_due(id(optimizer))

    def sampling_changed(self, full: bool) -> None:
        self._by_hand = False
        if not full:
            self.end()
        elif stepping.by_hand.active:
            self._begins = True
        elif self.now is None:
            self._begin_if_due(0)

    def _begin_if_due(self, after: int) -> None:
        """Where several optimizers take turns, not always after the same one: each has a part of the step."""
        if flight.steps() < self._due or not governor.allows(ACCOUNT):
            return
        if after == self._begun_after and self._optimizers.take_turns():
            self._begun_after = -1
        else:
            self._begun_after = after
            self.begin()

    def begin(self) -> None:
        off = FORWARD in guard.OFF or self.compiled or hiding.has_compiled()
        if off or self.observed >= MAX_OBSERVED or self._handles:
            return
        self.now = Observation()
        if self._cuts < MAX_CLOSE and self._tries < MAX_TRIES and (self._unused or self.suspects()):
            from . import cut_search

            self._tries += 1
            self.now.events = cut_search.Events()
        guard.on(FORWARD, self.end)
        self._handles = hooks.watch(self._before, self._after)
        if self.now.events is not None and not hooks.is_profiled():
            self.now.events.start()

    def end(self) -> None:
        """Take the hooks out."""
        observation, self.now = self.now, None
        while self._handles:
            self._handles.pop().remove()
        if observation is not None and observation.events is not None:
            observation.events.stop()

    def is_young(self) -> bool:
        """A step is observed, of which few backward passes were looked at."""
        return self.now is not None and self.now.backwards < MAX_READ

    def suspects(self) -> set[int]:
        """Parameters that an optimizer has, that want a gradient, never had one and were in no graph."""
        held = self._optimizers.holders()
        found = set()
        for key, entry in self._parameters.known.items():
            parameter = entry.ref()
            if parameter is None or entry.in_graph or key not in held or not parameter.requires_grad:
                continue
            if entry.seen >= CLOSE_AFTER and entry.none == entry.seen and parameter.grad is None:
                found.add(key)
        for key, ((ref, _), times) in self._unreached.items():
            parameter, known = ref(), self._parameters.known.get(key)
            never = (known is None or not known.in_graph) and parameter is not None and parameter.grad is None
            if times >= MIN_UNREACHED and never:
                found.add(key)
        return found

    # --- in such a step ----------------------------------------------------------------------------------------------

    def at_backward(self, leaves: list[Any], whole: bool, root: Any = None) -> None:
        """Before a backward pass in an observed step."""
        if self.now is not None:
            if whole and root is not None and self.now.ended < 0 and self.state_cut is None:
                self._look_for_unused(self.now, root)
            self.now.backwards += 1
            self.now.whole = self.now.whole and whole
            self.now.leaves.update(id(leaf) for leaf in leaves)
            if self.now.ended < 0:
                self.now.ended = self.now.next()
        self._turn_by_hand()

    def _turn_by_hand(self) -> None:
        if self._by_hand:
            self._by_hand = False
            self._turn(None)
        elif self._begins and self.now is None:
            self._begin_if_due(0)
        self._begins = False

    def _look_for_unused(self, observation: Observation, root: Any) -> None:
        if len(observation.calls) >= MIN_CALLS:
            with governor.LeftOut():
                from . import state_cut

            observation.unused = state_cut.unused_calls(observation, root)

    def nothing_reached(self) -> None:
        """Backward was called on a leaf: a loss without any graph, on which `requires_grad_()` was called."""
        self.leaf_losses += 1
        self.at_backward([], whole=True)

    def missed(self) -> None:
        """A backward pass in an observed step was not looked at."""
        if self.now is not None:
            self.now.whole, self.now.missed = False, True
        self._turn_by_hand()

    def _before(self, module: Any, arguments: Any) -> None:
        try:
            observation = self.now
            if observation is None or hooks.is_tracing():
                return
            if len(observation.calls) >= MAX_CALLS:
                observation.whole = False
                self.end()
                return
            outermost = not observation.open
            with governor.Reading() as reading:
                self._note_call(observation, module, arguments)
                reading.spent_by(ACCOUNT)
            if outermost:
                dispatch.emit("model_given", arguments, sys._getframe(1))
        except Exception as fault:
            guard.off(FORWARD, fault)

    def _note_call(self, observation: Observation, module: Any, arguments: Any) -> None:
        outermost = observation.open[0].module() if observation.open else None
        if outermost is None:
            self._names.saw(module)
        call = Call(module, module if outermost is None else outermost, observation.next(), torch.is_grad_enabled())
        every = _tensors(arguments)
        given = [tensor for tensor in every if tensor.is_floating_point()]
        call.input_graph = any(tensor.requires_grad for tensor in given)
        self.views.given(every)
        if observation.events is not None:
            call.dropped = _result_is_dropped(sys._getframe(1))
            if self._unused or call.dropped or not call.input_graph:
                call.given = _fingerprints(every)
                frames = islice(script_lines.user_frames(sys._getframe(1)), MAX_FRAMES)
                call.stack = [(frame.f_code, frame.f_lineno) for frame in frames]
        if self.observed < RAW_STEPS and given and not call.input_graph and call.own():
            self._note_raw(observation, call, given[0])
        observation.calls.append(call)
        observation.open.append(call)

    def _note_raw(self, observation: Observation, call: Call, tensor: Any) -> None:
        """A layer is given something without a graph: what that is like, where no layer made it."""
        came = dispatch.ask("data", "came", tensor)
        if observation.raw >= RAW_LAYERS or (observation.graphless and not came) or not governor.allows("learning"):
            return
        observation.raw += 1
        call.raw = dispatch.ask("data", "scale_of", objects.class_name(type(call.module())), tensor)

    def _after(self, module: Any, arguments: Any, output: Any) -> None:
        try:
            observation = self.now
            if observation is None or hooks.is_tracing():
                return
            while observation.open:
                call = observation.open.pop()
                if call.module() is module:
                    with governor.Reading() as reading:
                        self._note_result(observation, call, output)
                        reading.spent_by(ACCOUNT)
                    return
        except Exception as fault:
            guard.off(FORWARD, fault)

    def _note_result(self, observation: Observation, call: Call, output: Any) -> None:
        call.left = observation.next()
        given = [tensor for tensor in _tensors(output) if tensor.is_floating_point()]
        call.output_graph = any(tensor.requires_grad for tensor in given)
        call.made = [tensor.grad_fn._sequence_nr() for tensor in given[:MAX_MADE] if tensor.grad_fn is not None]
        if not call.output_graph and call.own():
            observation.graphless = True
        if observation.events is not None:
            call.gives = _fingerprints(given)

    # --- what it tells -----------------------------------------------------------------------------------------------

    def _finish(self, optimizer: Any) -> None:
        """Take in what was seen, where it was a whole training step."""
        observation = self.now
        self.end()
        if observation is None:
            return
        names = self._names.modules()
        if observation.raw and (observation.backwards or observation.missed):
            for call in observation.calls:
                if call.raw is not None and call.module() is not None:
                    dispatch.ask("data", "layer_is_given", call.name(names), call.raw)
        if not observation.calls:
            self.plain = self.plain or (observation.whole and observation.backwards > 0)
        if not observation.whole or not observation.backwards or not observation.calls:
            self._due = flight.steps() + 3
            return
        self.observed += 1
        self._due = max(flight.steps() + 3, int(flight.steps() * 1.5))
        self.modes.note(observation, names)
        self._note_called(observation)
        if not self._optimizers.built:
            self._note_unreached(observation)
        if observation.unused:
            self._look_at_state(observation, names)
        elif observation.events is not None and self.suspects():
            self._look_for_cut(observation, names, optimizer)

    def _note_called(self, observation: Observation) -> None:
        with_graph: dict[int, bool] = {}
        for call in observation.calls:
            for parameter in call.own():
                with_graph[id(parameter)] = with_graph.get(id(parameter), False) or call.grad
        for key, graph in with_graph.items():
            entry = self._parameters.known.get(key)
            if entry is not None and entry.begun:
                entry.called += 1
                entry.idle += not graph

    def _note_unreached(self, observation: Observation) -> None:
        """Beside others of the same model that are reached, and as they were in the steps before."""
        leaves, before = observation.leaves, self._unreached
        self._unreached = {}
        for call in observation.forward():
            root = call.outermost()
            if root is None or not (call.grad and call.output_graph) or len(self._unreached) > MAX_CALLS:
                continue
            own = [p for p in call.own() if p.requires_grad and id(p) not in leaves]
            if own and any(id(p) in leaves for p in naming.all_parameters(root)):
                for p in own:
                    state, (last, times) = state_of(p), before.get(id(p), (None, 0))
                    self._unreached[id(p)] = state, 1 + times * (state == last)
        if self.cut is not None and self.cut.by_hand and not self._unreached:
            self.cut = None

    def _look_at_state(self, observation: Observation, names: dict[int, str]) -> None:
        from . import state_cut

        if not self._unused:
            self._unused, self._due = True, flight.steps()  # the next step is looked at closely
            return
        self.state_cut = state_cut.find(observation, names)
        self._unused = False

    def _look_for_cut(self, observation: Observation, names: dict[int, str], optimizer: Any) -> None:
        lost = self.suspects() - observation.leaves
        held = {id(parameter) for parameter in parameters_of(optimizer)} if optimizer is not None else lost
        own = lost & held
        if not own and not (lost and self._called_elsewhere):  # another optimizer's step: the next one may be theirs
            self._due = flight.steps()
            return
        from . import cut_search

        times = 1 + (self.cut.times if self.cut is not None else 0)
        if optimizer is None:
            steps = min((self._unreached[key][1] for key in lost & self._unreached.keys()), default=0)
            cut = cut_search.Search(observation, lost, names, times).by_hand(steps)
            self._cuts += cut is not None
            self.cut = cut or self.cut
            return
        observation.leaves &= set(self._optimizers.holders())  # a tensor that nobody trains is no way to a parameter
        cut = cut_search.Search(observation, own or lost, names, times).find()
        self._cuts += cut is not None
        if cut is None and self._optimizers.take_turns():
            self._called_elsewhere, self._due = True, flight.steps()
        if cut is not None and (self.cut is None or cut.proven >= self.cut.proven):
            self.cut = cut


def _result_is_dropped(frame: FrameType | None) -> bool:
    """By the line of the user's that calls the module, straight or by way of a container."""
    from . import cut_search

    while frame is not None and str(frame.f_globals.get("__name__")).startswith(CALLING):
        frame = frame.f_back
    return frame is not None and cut_search.is_dropped(frame)


def _tensors(value: Any) -> list[Any]:
    """Plain tensors in the arguments or the result of a module."""
    kinds = (torch.Tensor, torch.nn.Parameter)
    if type(value) is torch.Tensor:
        found = [value]
    elif type(value) is tuple and len(value) == 1 and type(value[0]) is torch.Tensor:
        found = [value[0]]
    else:
        leaves = tensors.Walk(deep=MAX_DEPTH).leaves(value)
        found = [leaf.value for leaf in leaves if any(type(leaf.value) is kind for kind in kinds)]
    return [tensor for tensor in found if not tensor.is_complex()]


def _fingerprints(given: list[Any]) -> list[Fingerprint]:
    from . import cut_search

    return [cut_search.Fingerprint(tensor) for tensor in given[:MAX_FINGERPRINTS]]
