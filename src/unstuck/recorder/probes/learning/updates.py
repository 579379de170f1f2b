"""What a step does to each parameter: the gradient before it, the weight, and by how much it moved."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from ... import flight, gpu, objects
from ...records import Site
from ...records import learning as records
from ...records.learning import Setting

TENSORS = 160
ELEMENTS = 4_000_000
"""More of a model than that is not copied: its first, last and some of its middle parameters stand for it."""
ON_GPU = 1_000_000
"""Numbers of a model on a GPU that are copied there."""
KEPT = 48
RATES = 400
OPTIMIZERS, MANY, MOST = 64, 4000, 8000
"""Of more optimizers than that only the steps are counted; of so many parameters those that are gone are forgotten, and
no more than so many are known."""
SETTINGS = ("lr", "momentum", "weight_decay", "betas", "eps", "nesterov", "maximize")


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """Its parameter groups, without asking the optimizer itself: its class may be the user's."""
    found = (objects.instance_dict(optimizer) or {}).get("param_groups")
    return [group for group in found if type(group) is dict] if type(found) is list else []


def parameters_of(optimizer: Any) -> list[Any]:
    held = [group.get("params") for group in groups_of(optimizer)]
    return [parameter for each in held if type(each) is list for parameter in each if gpu.plain(parameter)]


class Optimizer:
    """One optimizer of the training; or, with no kind, the updates that the script writes out itself."""

    def __init__(self, optimizer: Any) -> None:
        self.ref: Callable[[], Any] = weakref.ref(optimizer, self._gone) if optimizer is not None else lambda: None
        self.is_gone = False
        self.key = id(optimizer)
        """By which the seam counts; 0 once another one lies there."""
        self.kind = objects.class_name(type(optimizer)) if optimizer is not None else ""
        self.steps = 0
        self.lrs: list[tuple[int, float]] = []
        self.settings = _settings(optimizer)
        self.chosen: list[weakref.ref[Any]] = []
        self.last: Any = None
        """All its moves of the step before, one after another."""
        self.last_at = 0
        self.site: Site | None = None
        """Where it was made, as far as the script tells."""
        self.cosines: list[float] = []

    def _gone(self, _: Any) -> None:
        """Nothing of a training that is over is kept alive."""
        self.chosen, self.last, self.is_gone = [], None, True

    def note_rate(self, optimizer: Any, step: int) -> None:
        rate = max((_float(group.get("lr")) for group in groups_of(optimizer)), default=0.0)
        if not self.lrs or self.lrs[-1][1] != rate:
            self.lrs.append((step, rate))
            if len(self.lrs) > RATES:
                self.lrs = self.lrs[:100] + self.lrs[100::2]

    def record(self, number: int) -> records.Optimizer:
        return records.Optimizer(
            number=number, kind=self.kind, steps=self.steps, lrs=self.lrs, settings=self.settings,
            cosines=self.cosines[-KEPT:], site=self.site,
        )  # fmt: skip


class Parameter:
    """One parameter, over the sampled steps."""

    __slots__ = (
        "grads", "in_graph", "moves", "none", "numel", "owner", "ref", "requires", "seen", "shape", "weights", "zero",
    )  # fmt: skip

    def __init__(self, parameter: Any, owner: int | None) -> None:
        self.ref = weakref.ref(parameter)
        self.owner = owner
        self.shape = [int(size) for size in parameter.shape]
        self.numel = int(parameter.numel())
        self.requires = bool(parameter.requires_grad)
        self.seen = self.none = self.zero = self.in_graph = 0
        self.grads: list[tuple[int, float]] = []
        self.weights: list[float] = []
        self.moves: list[tuple[int, float]] = []

    def record(self, name: str, module: str, more: dict[str, Any]) -> records.Parameter:
        return records.Parameter(
            name=name, module=module, shape=self.shape, numel=self.numel, owner=self.owner, requires=self.requires,
            seen=self.seen, none=self.none, zero=self.zero, in_graph=self.in_graph, grads=self.grads,
            weights=self.weights, moves=self.moves, **more,
        )  # fmt: skip


class Updates:
    """Every optimizer that steps, and every parameter that one has or that a graph ends in."""

    def __init__(self, copies: gpu.Copies) -> None:
        self.copies = copies
        self.optimizers: list[Optimizer] = []
        self._by_hand: Optimizer | None = None
        """Stands for the updates that the script writes out itself, while no optimizer steps."""
        self.parameters: dict[int, Parameter] = {}
        self._by_identity: dict[int, Optimizer] = {}
        self._before: dict[int, tuple[int, list[Any]]] = {}
        """By optimizer: the step, and what it may change now, as it was."""
        self._reached: list[weakref.ref[Any]] = []
        """Parameters that the last graph ended in."""

    def known(self, optimizer: Any) -> Optimizer:
        """The entry of an optimizer, made when it is first seen to step. None: of what is written by hand."""
        if optimizer is None:
            self._by_hand = self._by_hand or Optimizer(None)
            return self._by_hand
        entry = self._by_identity.get(id(optimizer))
        if entry is not None and entry.ref() is optimizer:
            return entry
        if entry is not None:
            entry.key = 0
        for key in [key for key, each in self._by_identity.items() if each.is_gone]:
            del self._by_identity[key]
        entry = self._by_identity[id(optimizer)] = Optimizer(optimizer)
        if len(self.optimizers) >= OPTIMIZERS:
            return entry
        self.optimizers.append(entry)
        self._own(entry, parameters_of(optimizer))
        return entry

    def stepping(self) -> list[Optimizer]:
        """All optimizers; where there is none, what stands for the updates made by hand."""
        return self.optimizers or [each for each in (self._by_hand,) if each is not None]

    def _own(self, entry: Optimizer, every: list[Any]) -> None:
        number = len(self.optimizers) - 1
        if len(self.parameters) > MANY:  # a search makes one model after another
            for key in [key for key, each in self.parameters.items() if each.ref() is None]:
                del self.parameters[key]
        for parameter in every:
            found = self.of(parameter)
            if found is None:
                self.parameters[id(parameter)] = Parameter(parameter, number)
            elif found.owner is None:
                found.owner = number
        entry.chosen = [weakref.ref(parameter) for parameter in _chosen(every)]

    def count(self, counts: Any) -> None:
        """What the seam counted at every step, as it stands now."""
        for each in self.optimizers:
            each.steps = counts.steps.get(each.key, each.steps)

    def of(self, parameter: Any) -> Parameter | None:
        found = self.parameters.get(id(parameter))
        return found if found is not None and found.ref() is parameter else None

    def held_by(self, optimizer: Any) -> set[int]:
        return {id(parameter) for parameter in parameters_of(optimizer)} if optimizer is not None else set()

    def reached(self, leaves: list[Any]) -> None:
        """Parameters that the graph of a loss ends in; also such as no optimizer has."""
        self._reached = []
        for leaf in leaves:
            found = self.of(leaf) if gpu.plain(leaf) else None
            if found is None:
                if not gpu.plain(leaf) or len(self.parameters) > MOST:
                    continue
                found = self.parameters[id(leaf)] = Parameter(leaf, None)
            found.in_graph += 1
            self._reached.append(found.ref)

    # --- before and after a step -------------------------------------------------------------------------------------

    def before(self, optimizer: Any) -> None:
        """In a sampled step: norms of gradients and weights, and a copy to see by how much each moves."""
        entry = self.known(optimizer)
        if optimizer is None:
            living = [parameter for ref in self._reached if (parameter := ref()) is not None]
            entry.chosen = [weakref.ref(parameter) for parameter in _chosen(living)]
        chosen = self._readable(entry)
        with torch.no_grad():
            if optimizer is None:
                self._read_by_hand(chosen)
            else:
                self._read_sizes(chosen)
            self._before[id(optimizer)] = flight.steps(), [parameter.detach().clone() for parameter in chosen]

    def _read_sizes(self, chosen: list[Any]) -> None:
        graded = []
        for parameter in chosen:
            each = self.parameters[id(parameter)]
            each.seen += 1
            each.requires = bool(parameter.requires_grad)
            each.none += parameter.grad is None
            if _has_gradient(parameter):
                graded.append(parameter)
        if not graded:
            return
        entries, step = [self.parameters[id(parameter)] for parameter in graded], flight.steps()

        def take(values: list[float]) -> None:
            for each, grad, weight in zip(entries, values[: len(entries)], values[len(entries) :], strict=True):
                each.zero += grad == 0.0
                _keep(each.grads, (step, grad))
                _keep(each.weights, weight)

        self.copies.numbers([_norm(p.grad) for p in graded] + [_norm(p) for p in graded], take)

    def _read_by_hand(self, chosen: list[Any]) -> None:
        """The script may have its gradients elsewhere, or has cleared them by now: none is no sign of anything."""
        for parameter in [parameter for parameter in chosen if gpu.near(parameter)]:
            each = self.parameters[id(parameter)]
            each.seen += 1
            _keep(each.weights, float(_norm(parameter)))
            grad = float(_norm(parameter.grad)) if _has_gradient(parameter) else 0.0
            if grad:
                _keep(each.grads, (flight.steps(), grad))

    def after(self, optimizer: Any, entry: Optimizer) -> None:
        """After it: how far each moved, and whether in the same direction as the step before."""
        step, before = self._before.pop(id(optimizer), (0, []))
        chosen = self._readable(entry) if before else []
        if not before or len(chosen) != len(before):
            return
        entries = [self.parameters[id(parameter)] for parameter in chosen]

        def take(values: list[float]) -> None:
            for each, move in zip(entries, values, strict=True):
                _keep(each.moves, (step, move))

        with torch.no_grad():
            moves = [parameter.detach() - copy for parameter, copy in zip(chosen, before, strict=True)]
            self.copies.numbers([_norm(move) for move in moves], take)
            self._compare(entry, torch.cat([move.reshape(-1).float() for move in moves]))

    def _compare(self, entry: Optimizer, moved: Any) -> None:
        """The direction of this update with that of the one before, where it was just before."""

        def take(values: list[float]) -> None:
            dot, size, last = values
            if size > 0 and last > 0:
                _keep(entry.cosines, dot / (size * last))

        last = entry.last
        if last is not None and entry.steps - entry.last_at == 1 and last.shape == moved.shape:
            self.copies.numbers([torch.dot(moved, last), _norm(moved), _norm(last)], take)
        entry.last, entry.last_at = moved, entry.steps

    def _readable(self, entry: Optimizer) -> list[Any]:
        """Those of its parameters that are read: on the CPU; or, where the first is on a GPU, a few on that one."""
        living = [parameter for ref in entry.chosen if (parameter := ref()) is not None]
        dense = [p for p in living if self.of(p) is not None and not p.is_sparse and p.is_floating_point()]
        if not dense or not gpu.away(dense[0]):
            return [p for p in dense if p.is_cpu]
        found, room = [], ON_GPU
        for parameter in dense:
            if parameter.device == dense[0].device and parameter.numel() <= room:
                found.append(parameter)
                room -= int(parameter.numel())
        return found


def _chosen(every: list[Any]) -> list[Any]:
    """All parameters of a small model; of a large one the first and the last, and some between."""
    if len(every) <= TENSORS and sum(int(p.numel()) for p in every) <= ELEMENTS:
        return list(every)
    step = max(1, len(every) // 40)
    chosen: dict[int, Any] = {}
    room = ELEMENTS
    for parameter in [*every[:20], *every[-20:], *every[20:-20:step]]:
        if parameter.numel() <= room and id(parameter) not in chosen:
            chosen[id(parameter)] = parameter
            room -= int(parameter.numel())
    return list(chosen.values())


def _has_gradient(parameter: Any) -> bool:
    grad = parameter.grad
    return grad is not None and not grad.is_sparse and gpu.plain(grad)


def _norm(tensor: Any) -> Any:
    return torch.linalg.vector_norm(tensor.detach().float())


def _settings(optimizer: Any) -> dict[str, Setting]:
    group = next(iter(groups_of(optimizer)), {}) if optimizer is not None else {}
    return {name: _plain(group[name]) for name in SETTINGS if name in group}


def _plain(value: Any) -> Setting:
    if type(value) in (tuple, list):
        return [_float(part) for part in value[:8]]
    return value if type(value) in (bool, int, float) else _float(value)


def _float(value: Any) -> float:
    """Of a number, also one of numpy's; a tensor's is read where that needs no waiting."""
    kind = type(value)
    if kind is torch.Tensor:
        return float(value) if value.is_cpu and value.numel() == 1 else 0.0
    return float(value) if issubclass(kind, (int, float)) or kind.__module__ == "numpy" else 0.0


def _keep(points: list[Any], point: Any) -> None:
    """The first ones, and ever fewer of the later ones."""
    points.append(point)
    if len(points) > KEPT:
        del points[KEPT // 3 : -1 : 2]
