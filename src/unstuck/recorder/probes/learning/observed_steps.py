"""One training step seen from its modules, now and then: which were called, in which mode, and with a graph or without.

torch's global module hooks are in place for that step only. Where a parameter that an optimizer has is never reached
by a loss, a few steps are looked at more closely (with the interpreter's profiling seam, where nobody uses it): between
which two modules the graph ends, and at which line. Never where a compiler is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch

from ... import dispatch, flight, governor, gpu, guard, hiding, objects
from ...hooks import modules as seam
from ...records.learning import GraphCut
from . import sites
from .calls import Call, Observation
from .graph_cut import Cut
from .graph_events import Print, tensors
from .modes import Modes
from .naming import Names
from .ownership import Ownership
from .updates import Updates

FORWARD = "forward"
"""A fault here switches only this part off."""
CALLS = 3000
MOST = 200
"""Steps that are observed in all."""
DEEP, TRIES = 3, 12
"""Closer looks in all that found something, of so many"""
RAW = 3
"""Observed steps in which it is looked at what layers are given that are given data as it came,"""
LAYERS = 6
"""and of how many."""
ENOUGH = 3
"""Sampled steps without a gradient, before a closer look is taken."""
PRINTS, FRAMES = 4, 12


class ObservedSteps:
    def __init__(self, updates: Updates, ownership: Ownership, names: Names, copies: gpu.Copies) -> None:
        self._updates, self._ownership, self._names = updates, ownership, names
        self.now: Observation | None = None
        self.observed = self.leaf_losses = 0
        self.modes = Modes(copies)
        self.cut: GraphCut | None = None
        self.compiled = False
        """A compiled module was made."""
        self._due = 2
        self._after_which = -1
        """The optimizer after whose step the last observation began."""
        self._found = self._tries = 0
        self._handles: list[Any] = []

    # --- when a step is observed -------------------------------------------------------------------------------------

    def after_step(self, optimizer: Any) -> None:
        """After an optimizer step: an observation ends, or one begins where it is due and the next step is sampled."""
        if self.now is not None:
            self._finish(optimizer)
        made = flight.steps() + (optimizer is None)
        if made < flight.FULL_STEPS or not made & flight.SAMPLED:
            self._begin_if_due(id(optimizer))

    def sampling_changed(self, full: bool) -> None:
        if not full:
            self.end()
        elif self.now is None:
            self._begin_if_due(0)

    def _begin_if_due(self, after: int) -> None:
        """Where several optimizers take turns, not always after the same one: each has a part of the step."""
        if flight.steps() < self._due or not governor.allows("learning"):
            return
        if after == self._after_which and len(self._updates.optimizers) > 1:
            self._after_which = -1
        else:
            self._after_which = after
            self.begin()

    def begin(self) -> None:
        if FORWARD in guard.OFF or self.compiled or hiding.has_compiled() or self.observed >= MOST or self._handles:
            return
        deep = self._found < DEEP and self._tries < TRIES and bool(self.suspects())
        self._tries += deep
        self.now = Observation(deep)
        guard.on(FORWARD, self.end)
        self._handles = seam.watch(self._before, self._after)
        if deep and not seam.is_profiled():
            self.now.events.start()

    def end(self) -> None:
        """Take the hooks out."""
        observation, self.now = self.now, None
        while self._handles:
            self._handles.pop().remove()
        if observation is not None:
            observation.events.stop()

    def suspects(self) -> set[int]:
        """Parameters that an optimizer has, that want a gradient, never had one and were in no graph."""
        held = self._ownership.holders()
        found = set()
        for key, each in self._updates.parameters.items():
            parameter = each.ref()
            if parameter is None or each.in_graph or key not in held or not parameter.requires_grad:
                continue
            if each.seen >= ENOUGH and each.none == each.seen and parameter.grad is None:
                found.add(key)
        return found

    # --- in such a step ----------------------------------------------------------------------------------------------

    def at_backward(self, leaves: list[Any], whole: bool) -> None:
        """Before a backward pass in an observed step."""
        if self.now is not None:
            self.now.backwards += 1
            self.now.whole = self.now.whole and whole
            self.now.leaves.update(id(leaf) for leaf in leaves)
            if self.now.ended < 0:
                self.now.ended = self.now.next()

    def nothing_reached(self) -> None:
        """Backward was called on a loss that has no graph at all, and was only told to want a gradient."""
        self.leaf_losses += 1
        self.at_backward([], whole=True)

    def missed(self) -> None:
        """A backward pass in an observed step was not looked at."""
        if self.now is not None:
            self.now.whole, self.now.missed = False, True

    def _before(self, module: Any, arguments: Any) -> None:
        try:
            observation = self.now
            if observation is None or seam.is_tracing():
                return
            if len(observation.calls) >= CALLS:
                observation.whole = False
                self.end()
                return
            outermost = not observation.open
            with governor.Reading() as reading:
                self._note_call(observation, module, arguments)
                reading.spent_by("learning")
            if outermost:
                dispatch.emit("model_given", arguments, sys._getframe(1))
        except Exception as fault:
            guard.off(FORWARD, fault)

    def _note_call(self, observation: Observation, module: Any, arguments: Any) -> None:
        outermost = observation.open[0].module() if observation.open else None
        if outermost is None:
            self._names.saw(module)
        call = Call(module, module if outermost is None else outermost, observation.next(), torch.is_grad_enabled())
        given = tensors(arguments)
        call.input_graph = any(tensor.requires_grad for tensor in given)
        if observation.deep and not call.input_graph:
            call.given = [Print(tensor) for tensor in tensors(arguments, whole=True)[:PRINTS]]
            call.stack = [(here.f_code, here.f_lineno) for here in islice(_above(), FRAMES)]
        if self.observed < RAW and given and not call.input_graph and call.own():
            self._note_raw(observation, call, given[0])
        observation.calls.append(call)
        observation.open.append(call)

    def _note_raw(self, observation: Observation, call: Call, tensor: Any) -> None:
        """A layer is given something without a graph: what that is like, where no layer made it."""
        came = dispatch.ask("data", "came", tensor)
        if observation.raw >= LAYERS or (observation.graphless and not came) or not governor.allows("learning"):
            return
        observation.raw += 1
        call.raw = dispatch.ask("data", "scale_of", objects.class_name(type(call.module())), tensor)

    def _after(self, module: Any, arguments: Any, output: Any) -> None:
        try:
            observation = self.now
            if observation is None or seam.is_tracing():
                return
            while observation.open:
                call = observation.open.pop()
                if call.module() is module:
                    with governor.Reading() as reading:
                        self._note_result(observation, call, output)
                        reading.spent_by("learning")
                    return
        except Exception as fault:
            guard.off(FORWARD, fault)

    def _note_result(self, observation: Observation, call: Call, output: Any) -> None:
        call.left = observation.next()
        given = tensors(output)
        call.output_graph = any(tensor.requires_grad for tensor in given)
        if not call.output_graph and call.own():
            observation.graphless = True
        if observation.deep:
            call.gives = [Print(tensor) for tensor in given[:PRINTS]]

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
        if not observation.whole or not observation.backwards or not observation.calls:
            self._due = flight.steps() + 3
            return
        self.observed += 1
        self._due = max(flight.steps() + 3, int(flight.steps() * 1.5))
        self.modes.note(observation, names)
        self._note_called(observation)
        if observation.deep:
            self._look_for_cut(observation, names, optimizer)

    def _note_called(self, observation: Observation) -> None:
        seen: dict[int, bool] = {}
        for call in observation.calls:
            for parameter in call.own():
                seen[id(parameter)] = seen.get(id(parameter), False) or call.grad
        for key, graph in seen.items():
            state = self._ownership.states.get(key)
            if state is not None:
                state.called += 1
                state.idle += not graph

    def _look_for_cut(self, observation: Observation, names: dict[int, str], optimizer: Any) -> None:
        lost = (self.suspects() - observation.leaves) & self._updates.held_by(optimizer)
        if not lost:  # the step of another optimizer: the next one may be theirs
            self._due = flight.steps()
            return
        found = Cut(observation, lost, names, 1 + (self.cut.times if self.cut is not None else 0)).find()
        self._found += found is not None
        if found is not None and (self.cut is None or found.proven >= self.cut.proven):
            self.cut = found


def _above() -> Iterator[FrameType]:
    return sites.user_frames(sys._getframe(1))
