"""Every parameter that an optimizer has or a graph ends in: how it began, and what sampled steps did to it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Literal

from ... import flight, gpu
from ...records import learning as records
from . import graph_reading

MANY_PARAMETERS = 4000  # above this, those that are gone are forgotten: a search makes one model after another
MAX_PARAMETERS = 8000
MAX_BEGUN = 1000  # parameters of which it is noted how they began
MAX_ELEMENTS = 1_000_000  # a larger parameter is only sampled
GPU_ELEMENTS, GPU_MATRICES = 1 << 14, 128  # copied of one that is on a GPU, and of how many
SAMPLE_ELEMENTS = 12
MAX_FIRST_WRITES = 4  # in place, to make a layer and give it its first weights; a training makes many more
MIN_ABSENT = 3  # graphs in a row that did not end in it; those of networks that are trained in turn move again
ALIKE_LATER = 0.01  # of the largest element: kernels round rows apart


class Parameter:
    """One parameter, over the sampled steps."""

    __slots__ = (
        "_entered", "_first", "_looked", "_version", "begun", "beside", "called", "columns_alike", "fresh", "grads",
        "idle", "in_graph", "last_graph", "moves", "none", "numel", "owner", "ref", "requires", "rows", "seen", "shape",
        "still_alike", "weights", "zero",
    )  # fmt: skip

    def __init__(self, parameter: Any) -> None:
        self.ref = weakref.ref(parameter)
        self.owner: int | None = None  # number of the first optimizer that has it and steps
        self.shape = [int(size) for size in parameter.shape]
        self.numel = int(parameter.numel())
        self.requires = bool(parameter.requires_grad)
        self.seen = self.none = self.zero = self.in_graph = 0
        self.grads: list[tuple[int, float]] = []
        self.weights: list[float] = []
        self.moves: list[tuple[int, float]] = []
        self.begun = False
        self.rows: Literal["", "same", "zero"] = ""
        self.fresh = self.still_alike = self.columns_alike = self.beside = False
        self.called = self.idle = 0
        """Observed steps in which its module was called; of these, without a graph being recorded."""
        self._version = 0
        self._first: tuple[float, ...] | None = None
        self.last_graph = 0
        """Number of the last graph that ended in it;"""
        self._entered: tuple[int, Any] | None = None
        """after an absence: at which training step, and what it was then."""
        self._looked: dict[str, Any] = {}

    def begin(self, parameter: Any) -> None:
        """Note how it begins; what must be copied from a GPU comes later, to `take_first`."""
        self.begun = True
        self._version, self._first = int(parameter._version), _sample(parameter)
        if not gpu.away(parameter):
            self.take_first(parameter)

    def take_first(self, value: Any) -> None:
        if rows_alike(value):
            self.rows = "same" if bool(value.detach().any()) else "zero"
        self.fresh = self._version <= MAX_FIRST_WRITES and is_fresh(value)

    def take_later(self, value: Any) -> None:
        self.still_alike = rows_alike(value, ALIKE_LATER)
        self.columns_alike = value.dim() == 2 and rows_alike(value.detach().t(), ALIKE_LATER)

    def enter(self, parameter: Any) -> None:
        self._entered = flight.steps(), (int(parameter._version), _sample(parameter))

    def _late(self, parameter: Any) -> int | None:
        entered = self._entered
        return entered[0] if entered and entered[1] == (int(parameter._version), _sample(parameter)) else None

    def moved(self) -> bool:
        """It is no longer what it was when it began."""
        parameter = self.ref()
        return parameter is None or int(parameter._version) != self._version or _sample(parameter) != self._first

    def look(self, held: dict[int, int], copies: gpu.Copies) -> None:
        """Note what only the parameter itself tells: at the end of the process it may be gone. `held`: by identity,
        the number of the optimizer, as built, that has it."""
        parameter = self.ref()
        if parameter is None or not self.begun:
            return
        if self.rows and gpu.away(parameter):
            copies.bring([gpu.thinned(parameter.detach(), GPU_ELEMENTS, -1)], lambda parts: self.take_later(parts[0]))
        elif self.rows:
            self.take_later(parameter)
        moved = self.moved()
        self._looked = {
            "fresh": self.fresh and not (moved and int(parameter._version) > self._version + MAX_FIRST_WRITES),
            "moved": moved,
            "late": self._late(parameter),
            "alike": self.rows,
            "still_alike": self.still_alike,
            "columns_alike": self.columns_alike,
            "called": self.called,
            "idle": self.idle,
            "trainable": bool(parameter.requires_grad),
            "is_parameter": type(parameter).__name__ == "Parameter",
            "held": held.get(id(parameter)),
        }

    def record(self, name: str, module: str) -> records.Parameter:
        return records.Parameter(
            name=name, module=module, shape=self.shape, numel=self.numel, owner=self.owner, requires=self.requires,
            seen=self.seen, none=self.none, zero=self.zero, in_graph=self.in_graph, grads=self.grads,
            weights=self.weights, moves=self.moves, beside=self.beside, **self._looked,
        )  # fmt: skip


class Parameters:
    """All that are known, by identity."""

    def __init__(self, copies: gpu.Copies) -> None:
        self._copies = copies
        self.known: dict[int, Parameter] = {}
        self.last_reached: list[weakref.ref[Any]] = []  # those that the last graph ended in
        self._new: list[Parameter] = []
        self._begun = self._graphs = 0

    def get(self, parameter: Any) -> Parameter | None:
        found = self.known.get(id(parameter))
        return found if found is not None and found.ref() is parameter else None

    def add(self, parameter: Any) -> Parameter:
        found = self.get(parameter)
        if found is None:
            found = self.known[id(parameter)] = Parameter(parameter)
            self._new.append(found)
        return found

    def own(self, parameters: list[Any], number: int) -> None:
        """The optimizer of this number steps, and has these."""
        if len(self.known) > MANY_PARAMETERS:
            for key in [key for key, entry in self.known.items() if entry.ref() is None]:
                del self.known[key]
        for parameter in parameters:
            entry = self.add(parameter)
            if entry.owner is None:
                entry.owner = number

    def reached(self, leaves: list[Any], graph: graph_reading.Graph) -> None:
        """The graph of a loss ends in these; also in such as no optimizer has."""
        self.last_reached = []
        self._graphs += 1
        beside: set[int] | None = None
        for leaf in leaves:
            if gpu.plain(leaf) and (len(self.known) <= MAX_PARAMETERS or self.get(leaf) is not None):
                entry = self.add(leaf)
                if not entry.in_graph:  # those of one graph follow each other, in its order
                    self.known[id(leaf)] = self.known.pop(id(leaf))
                    beside = graph_reading.beside(graph) if beside is None else beside
                    entry.beside = id(leaf) in beside
                entry.in_graph += 1
                if self._graphs - entry.last_graph > MIN_ABSENT:
                    entry.enter(leaf)
                entry.last_graph = self._graphs
                self.last_reached.append(entry.ref)

    def begin(self, held: Iterable[Any]) -> None:
        """Note how parameters begin that were not seen before; `held`: those that optimizers have."""
        for parameter in held:
            if len(self.known) <= MAX_PARAMETERS:
                self.add(parameter)
        new, self._new = self._new[: MAX_BEGUN - self._begun], []
        living = [(entry, parameter) for entry in new if (parameter := entry.ref()) is not None]
        for entry, parameter in living:
            entry.begin(parameter)
        self._begun += len(living)
        self._bring([(entry, parameter) for entry, parameter in living if gpu.away(parameter)])

    def _bring(self, away: list[tuple[Parameter, Any]]) -> None:
        """Those of a GPU, some elements of each."""
        matrices = [(entry, value) for entry, value in away if value.dim() >= 2 and not value.is_sparse]
        chosen = [(entry, value) for entry, value in matrices[:GPU_MATRICES] if value.device == matrices[0][1].device]

        def take(parts: list[Any]) -> None:
            for (entry, _), part in zip(chosen, parts, strict=True):
                entry.take_first(part)

        if chosen:
            self._copies.bring([gpu.thinned(value.detach(), GPU_ELEMENTS, -1) for _, value in chosen], take)


def _sample(parameter: Any) -> tuple[float, ...] | None:
    """Some of its elements; None where reading them would wait for a device."""
    value = parameter.detach()
    if not gpu.near(value) or value.is_sparse or not value.is_floating_point():
        return None
    flat = value.reshape(-1) if value.is_contiguous() else value.flatten()
    return tuple(flat[:: max(1, flat.numel() // SAMPLE_ELEMENTS)][:SAMPLE_ELEMENTS].tolist())


def state_of(parameter: Any) -> tuple[weakref.ref[Any], tuple[int, tuple[float, ...] | None]]:
    """It, weakly, and what it is now: how often it was written to, and some of its elements."""
    return weakref.ref(parameter), (int(parameter._version), _sample(parameter))


def _is_matrix(value: Any, least: int) -> bool:
    plain = value.device.type == "cpu" and value.dim() >= 2 and not value.is_sparse
    return bool(plain and least <= value.numel() <= MAX_ELEMENTS)


def rows_alike(parameter: Any, within: float = 0.0) -> bool:
    """All rows of the matrix are the same, `within` this part of its largest element."""
    value = parameter.detach()
    if not _is_matrix(value, 4) or value.shape[0] < 2:
        return False
    if not within and not bool((value[0] == value[1]).all()):
        return False
    return bool((value - value[:1]).abs().max() <= within * value.abs().max())


def is_fresh(parameter: Any) -> bool:
    """It has random first weights: values spread evenly or by a bell curve, as no training leaves them."""
    value = parameter.detach()
    if not _is_matrix(value, 24) or not value.is_floating_point():
        return False
    value = value.float()
    spread = float(value.std())
    if spread <= 0 or abs(float(value.mean())) > 0.4 * spread:
        return False
    if float(value.abs().max()) < 1.95 * spread:
        return True  # a uniform distribution ends at 1.73
    if value.numel() < 512 and abs(spread - 1) > 0.15:
        return False  # too few to know a bell curve by its shape, but for the one of `randn`
    excess = float(((value - value.mean()) ** 4).mean()) / spread**4 - 3
    return bool(abs(excess) < 4 * (24 / value.numel()) ** 0.5)
