"""What is read of the graph of a loss before its backward pass, in sampled steps.

What is needed where something is wrong is imported then.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from ... import dispatch, loading
from ...records.learning import FlatOperation
from . import graph_reading, script_lines
from .graph_reading import Graph
from .measurements import Measurements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .term_cut import Derivatives

MAX_DERIVATIVES = 64  # lines of the script that take one
MAX_LOST = 64
FIRST_STILL, OFTEN_STILL = 16, 8  # backward passes until the first look at what nothing trains; between two looks


class BackwardPass:
    def __init__(self, measured: Measurements) -> None:
        self._measured = measured
        self.asked: list[Any] = []
        """Leaves for whose gradients `autograd.grad` is called: a graph of many nodes ends in them, too, though it is
        not read to its end."""
        self._derivatives: Derivatives = {}  # taken without a graph, with the weights in what they were taken of
        self._named = 0  # parameters known when names were last looked for
        self._next_still = FIRST_STILL
        """Backward passes until a copy that nothing changes is looked for."""

    def derivative_taken(self, root: Any, frame: FrameType) -> None:
        """Which weights are in what it is taken of."""
        here = script_lines.user_frame(frame)
        if here is not None and root.grad_fn is not None and len(self._derivatives) < MAX_DERIVATIVES:
            weights = filter(self._lasts, graph_reading.behind(root.grad_fn))
            self._derivatives[here.f_code.co_filename, here.f_lineno] = frozenset(map(id, weights))

    def _lasts(self, leaf: Any) -> bool:
        """It is no input, which comes and goes."""
        entry = self._measured.parameters.get(leaf)
        return type(leaf) is torch.nn.Parameter or (entry is not None and entry.in_graph > 1)

    def take_asked(self) -> list[Any]:
        """Not kept: that they are gone tells that others have taken their place."""
        asked, self.asked = self.asked, []
        return asked

    def of_leaf(self, frame: FrameType) -> None:
        """Nothing leads from this loss to the model."""
        self._name_all(frame)
        self._measured.optimizers.at_backward()
        self._measured.observed.nothing_reached()

    def read(self, root: Any, frame: FrameType, asked: list[Any]) -> None:
        measured = self._measured
        graph = graph_reading.read(root)
        measured.compiled = measured.compiled or graph.compiled
        known = set(map(id, graph.leaves))
        more = [leaf for leaf in asked if id(leaf) not in known] if graph.capped else []
        if not self._for_itself(asked):
            measured.parameters.reached([*graph.leaves, *more], graph)
        self._name_all(frame)
        measured.optimizers.at_backward()
        measured.updates.at_first_backward()
        measured.observed.at_backward(graph.leaves, whole=not graph.capped, root=root)
        measured.activations.note(graph)
        measured.observed.views.look(graph.views, frame)
        measured.returns.look(frame)
        if graph.flat and not graph.capped and measured.flat is None:
            self._note_flat(root, graph, frame)
        if not loading.everything():
            self._give_on(graph, frame)
        measured.heads.note(root, frame)
        self._look_at_terms(root, graph.leaves, frame)

    def _for_itself(self, asked: list[Any]) -> bool:
        """Gradients of what optimizers have, asked for by `autograd.grad` (an inner step, say): none is left there."""
        held = self._measured.optimizers.holders() if asked else ()
        return bool(asked) and all(id(leaf) in held for leaf in asked)

    def _name_all(self, frame: FrameType) -> None:
        """Once when the first graph is read, and again where modules or parameters came that have no name."""
        known, names = self._measured.parameters.known, self._measured.names
        more = len(known) > 2 * self._named and any(key not in names.names for key in known)
        if names.stale or more:
            self._named = len(known)
            names.find(frame)

    def _note_flat(self, root: Any, graph: Graph, frame: FrameType) -> None:
        leaves = graph_reading.only_behind(root, graph.flat)
        draws = graph_reading.drawn(graph.flat) if not leaves else None
        if draws is not None:  # what is behind it may learn from another part of the loss
            leaves = graph_reading.behind(draws)
        lost = [name for leaf in leaves if (name := self._measured.names.name(leaf))]
        if lost:
            first, also = draws or graph.flat[0], draws is not None
            operation, shape = graph_reading.flat_operation(first) or "", graph_reading.shape_of(first) or []
            site = script_lines.only_line(operation, frame)
            self._measured.flat = FlatOperation(
                operation=operation, lost=lost[:MAX_LOST], site=site, other_ways=also, shape=shape
            )

    def _give_on(self, graph: Graph, frame: FrameType) -> None:
        """To those who want to know what the model is given."""
        plain, saved = self._measured.observed.plain, self._measured.saved
        if (data := graph_reading.data_of(graph, saved)) is not None:
            dispatch.emit("graph_given", data, frame, plain)
        elif plain and (rows := graph_reading.rows_asked(graph, saved)):
            dispatch.emit("rows_asked", rows, frame)

    def _look_at_terms(self, root: Any, leaves: list[Any], frame: FrameType) -> None:
        """Is there one without a graph? Inputs that want a gradient, for a derivative, come and go."""
        kinds, measured = {type(leaf) for leaf in leaves}, self._measured

        def trained(leaf: Any) -> bool:
            return type(leaf) is torch.nn.Parameter or (torch.nn.Parameter not in kinds and self._lasts(leaf))

        if measured.terms is None and graph_reading.lacks_a_term(root, trained, bool(self._derivatives)):
            from . import term_cut

            measured.terms = term_cut.TermCuts(self._derivatives)
        if measured.terms is not None and any(map(trained, leaves)):
            measured.terms.look(root, frame, trained, {id(leaf) for leaf in leaves if trained(leaf)})

    def look_for_still_copy(self, frame: FrameType) -> None:
        """Where there are parameters that nothing trains, a line of the script may be meant to change them."""
        measured = self._measured
        if measured.losses.passes() < self._next_still:
            return
        self._next_still *= OFTEN_STILL
        if measured.still is None:
            from . import still_copy

            measured.still = still_copy.StillCopies()
        held = measured.optimizers.holders()
        trained = {key for key, entry in measured.parameters.known.items() if entry.in_graph or key in held}
        measured.still.look(measured.names, trained, frame)
