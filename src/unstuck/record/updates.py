"""What an optimizer's step does to each parameter: the gradient before it, the weight, and by how much it moved."""

from __future__ import annotations

import sys
import weakref

from . import flight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TENSORS = 160
ELEMENTS = 4_000_000
"""More of a model than that is not copied: its first, last and some of its middle parameters stand for it."""
KEPT = 48
optimizers: list[Optimizer] = []
parameters: dict[int, Parameter] = {}


class Optimizer:
    """One optimizer of the training."""

    __slots__ = (
        "_ref",
        "chosen",
        "cosines",
        "kind",
        "last",
        "last_at",
        "lrs",
        "settings",
        "site",
        "stale",
        "steps",
        "tried",
    )

    def __init__(self, optimizer: Any) -> None:
        self._ref = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.steps = 0
        self.lrs: list[tuple[int, float]] = []
        self.settings = _settings(optimizer)
        self.chosen: list[Any] = []
        self.last: list[Any] | None = None
        self.last_at = 0
        self.site: list[str | int] | None = None
        """Where it was made, as far as the script tells."""
        self.cosines: list[float] = []
        self.stale = self.tried = 0

    def is_of(self, optimizer: Any) -> bool:
        return self._ref() is optimizer

    def note_rate(self, optimizer: Any, step: int) -> None:
        rate = max((_float(group.get("lr")) for group in optimizer.param_groups), default=0.0)
        if not self.lrs or self.lrs[-1][1] != rate:
            self.lrs.append((step, rate))
            if len(self.lrs) > 400:
                self.lrs = self.lrs[:100] + self.lrs[100::2]

    def plain(self, number: int) -> dict[str, object]:
        return {
            "number": number,
            "kind": self.kind,
            "steps": self.steps,
            "lrs": self.lrs,
            "settings": self.settings,
            "cosines": self.cosines[-KEPT:],
            "stale": self.stale,
            "checked": self.tried,
            "site": self.site,
        }


class Parameter:
    """One parameter, over the sampled steps."""

    __slots__ = (
        "grads",
        "in_graph",
        "moves",
        "none",
        "numel",
        "owner",
        "ref",
        "requires",
        "seen",
        "shape",
        "weights",
        "zero",
    )

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

    def plain(self, name: str, kind: str) -> dict[str, object]:
        return {
            "name": name,
            "module": kind,
            "shape": self.shape,
            "numel": self.numel,
            "owner": self.owner,
            "requires": self.requires,
            "seen": self.seen,
            "none": self.none,
            "zero": self.zero,
            "in_graph": self.in_graph,
            "grads": self.grads,
            "weights": self.weights,
            "moves": self.moves,
        }


def known(optimizer: Any) -> Optimizer:
    """The entry of an optimizer, made when it is first seen to step."""
    for each in optimizers:
        if each.is_of(optimizer):
            return each
    entry = Optimizer(optimizer)
    optimizers.append(entry)
    every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for parameter in every:
        found = parameters.get(id(parameter))
        if found is None or found.ref() is not parameter:
            parameters[id(parameter)] = Parameter(parameter, len(optimizers) - 1)
        elif found.owner is None:
            found.owner = len(optimizers) - 1
    entry.chosen = _chosen(every)
    return entry


def _chosen(every: list[Any]) -> list[Any]:
    """All parameters of a small model; of a large one the first and the last, and some between."""
    whole = sum(int(p.numel()) for p in every)
    if len(every) <= TENSORS and whole <= ELEMENTS:
        return list(every)
    step = max(1, len(every) // 40)
    chosen: list[Any] = []
    room = ELEMENTS
    for parameter in [*every[:20], *every[-20:], *every[20:-20:step]]:
        if parameter.numel() <= room and not any(parameter is other for other in chosen):
            chosen.append(parameter)
            room -= int(parameter.numel())
    return chosen


def before(optimizer: Any) -> list[Any]:
    """Before a sampled step: norms of gradients and weights, and copies of the weights."""
    torch = sys.modules["torch"]
    entry = known(optimizer)
    chosen = [p for p in entry.chosen if p.device.type == "cpu" and not p.is_sparse]
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        for parameter in chosen:
            each = parameters[id(parameter)]
            each.seen += 1
            each.requires = bool(parameter.requires_grad)
            grad = parameter.grad
            if grad is None:
                each.none += 1
                continue
            if grad.is_sparse:
                continue
            norm = float(torch.linalg.vector_norm(grad.float()))
            each.zero += norm == 0.0
            _keep(each.grads, (flight.steps, norm))
            _keep(each.weights, float(torch.linalg.vector_norm(parameter.float())))
        return [parameter.detach().clone() for parameter in chosen]


def after(optimizer: Any, copies: list[Any]) -> None:
    """After it: how far each moved, and whether in the same direction as the step before."""
    torch = sys.modules["torch"]
    entry = known(optimizer)
    chosen = [p for p in entry.chosen if p.device.type == "cpu" and not p.is_sparse]
    if len(chosen) != len(copies):
        return
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        moves = [parameter.detach() - copy for parameter, copy in zip(chosen, copies, strict=True)]
        for parameter, move in zip(chosen, moves, strict=True):
            _keep(parameters[id(parameter)].moves, (flight.steps, float(torch.linalg.vector_norm(move.float()))))
        if entry.last is not None and entry.steps - entry.last_at == 1 and len(entry.last) == len(moves):
            dot = sum(float((a.float() * b.float()).sum()) for a, b in zip(moves, entry.last, strict=True))
            sizes = [sum(float((m.float() ** 2).sum()) for m in each) ** 0.5 for each in (moves, entry.last)]
            if sizes[0] > 0 and sizes[1] > 0:
                _keep(entry.cosines, dot / (sizes[0] * sizes[1]))
        entry.last, entry.last_at = moves, entry.steps


def reached(leaves: list[Any]) -> None:
    """Parameters that the graph of a loss ends in; also such as no optimizer has."""
    for leaf in leaves:
        found = parameters.get(id(leaf))
        if found is None or found.ref() is not leaf:
            if len(parameters) > 8000:
                return
            found = parameters[id(leaf)] = Parameter(leaf, None)
        found.in_graph += 1


def check_cleared(optimizer: Optimizer) -> None:
    """At the first backward after a step: are the gradients of the step before still there?"""
    torch = sys.modules["torch"]
    grads = [p.grad for p in optimizer.chosen[:4] if p.requires_grad and p.grad is not None and p.device.type == "cpu"]
    optimizer.tried += 1
    with torch.no_grad():
        optimizer.stale += any(bool(grad.any()) for grad in grads if not grad.is_sparse)


def _settings(optimizer: Any) -> dict[str, object]:
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    names = ("lr", "momentum", "weight_decay", "betas", "eps", "nesterov", "maximize")
    return {name: _plain(group[name]) for name in names if name in group}


def _plain(value: Any) -> object:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, bool | int | float) else _float(value)


def _float(value: Any) -> float:
    try:
        return float(value) if not hasattr(value, "is_cpu") or value.is_cpu else 0.0
    except (TypeError, ValueError):
        return 0.0


def _keep(points: list[Any], point: Any) -> None:
    """The first ones, and ever fewer of the later ones."""
    points.append(point)
    if len(points) > KEPT:
        del points[KEPT // 3 : -1 : 2]
