"""What an optimizer's step does to each parameter: the gradient before it, the weight, and by how much it moved."""

from __future__ import annotations

import sys
import weakref

from ... import flight, gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TENSORS = 160
ELEMENTS = 4_000_000
"""More of a model than that is not copied: its first, last and some of its middle parameters stand for it."""
ON_GPU = 1_000_000
"""Numbers of a model on a GPU that are copied there."""
KEPT = 48
OPTIMIZERS, MANY = 64, 4000
"""Of more optimizers than that only the steps are counted; of so many parameters those that are gone are forgotten."""
optimizers: list[Optimizer] = []
parameters: dict[int, Parameter] = {}
_by_identity: dict[int, Optimizer] = {}


class Optimizer:
    """One optimizer of the training."""

    __slots__ = (
        "_ref",
        "chosen",
        "cosines",
        "fresh",
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
        self._ref = weakref.ref(optimizer, self._gone)
        self.kind = type(optimizer).__name__
        self.steps = 0
        self.lrs: list[tuple[int, float]] = []
        self.settings = _settings(optimizer)
        self.chosen: list[weakref.ref[Any]] = []
        self.last: Any = None
        """All its moves of the step before, one after another."""
        self.last_at = 0
        self.site: list[str | int] | None = None
        """Where it was made, as far as the script tells."""
        self.cosines: list[float] = []
        self.stale = self.tried = 0
        self.fresh = True
        """The step before was sampled."""

    def _gone(self, _: Any) -> None:
        """Nothing of a training that is over is kept alive."""
        self.chosen, self.last = [], None
        held = _by_identity or {}  # None once the interpreter has cleared its modules
        for key in [key for key, entry in held.items() if entry is self]:
            del _by_identity[key]

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
    entry = _by_identity.get(id(optimizer))
    if entry is not None and entry.is_of(optimizer):
        return entry
    entry = _by_identity[id(optimizer)] = Optimizer(optimizer)
    if len(optimizers) >= OPTIMIZERS:
        return entry
    optimizers.append(entry)
    whole = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    every = [parameter for parameter in whole if gpu.plain(parameter)]
    _forget_the_dead()
    for parameter in every:
        found = parameters.get(id(parameter))
        if found is None or found.ref() is not parameter:
            parameters[id(parameter)] = Parameter(parameter, len(optimizers) - 1)
        elif found.owner is None:
            found.owner = len(optimizers) - 1
    entry.chosen = [weakref.ref(parameter) for parameter in _chosen(every)]
    return entry


def _forget_the_dead() -> None:
    """Parameters of models that are no more, where there are many: a search makes one model after another."""
    if len(parameters) > MANY:
        for key in [key for key, each in parameters.items() if each.ref() is None]:
            del parameters[key]


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
    chosen = _readable(known(optimizer))
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        graded = []
        for parameter in chosen:
            each = parameters[id(parameter)]
            each.seen += 1
            each.requires = bool(parameter.requires_grad)
            each.none += parameter.grad is None
            if parameter.grad is not None and not parameter.grad.is_sparse and gpu.plain(parameter.grad):
                graded.append(parameter)
        if graded:
            entries = [parameters[id(parameter)] for parameter in graded]
            _numbers([_norm(torch, p.grad) for p in graded] + [_norm(torch, p) for p in graded], _sizes_of(entries))
        return [parameter.detach().clone() for parameter in chosen]


def _sizes_of(entries: list[Parameter]) -> Callable[[list[float]], None]:
    step = flight.steps()

    def take(values: list[float]) -> None:
        for each, grad, weight in zip(entries, values[: len(entries)], values[len(entries) :], strict=True):
            each.zero += grad == 0.0
            _keep(each.grads, (step, grad))
            _keep(each.weights, weight)

    return take


def after(optimizer: Any, copies: list[Any]) -> None:
    """After it: how far each moved, and whether in the same direction as the step before."""
    torch = sys.modules["torch"]
    entry = known(optimizer)
    chosen = _readable(entry)
    if len(chosen) != len(copies) or not chosen:
        return
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        moves = [parameter.detach() - copy for parameter, copy in zip(chosen, copies, strict=True)]
        entries = [parameters[id(parameter)] for parameter in chosen]
        _numbers([_norm(torch, move) for move in moves], _moves_of(entries))
        flat = torch.cat([move.reshape(-1).float() for move in moves])
        if entry.last is not None and entry.steps - entry.last_at == 1 and entry.last.shape == flat.shape:
            last = entry.last
            _numbers([torch.dot(flat, last), _norm(torch, flat), _norm(torch, last)], _direction_of(entry))
        entry.last, entry.last_at = flat, entry.steps


def _moves_of(entries: list[Parameter]) -> Callable[[list[float]], None]:
    step = flight.steps()

    def take(values: list[float]) -> None:
        for each, move in zip(entries, values, strict=True):
            _keep(each.moves, (step, move))

    return take


def _direction_of(entry: Optimizer) -> Callable[[list[float]], None]:
    def take(values: list[float]) -> None:
        dot, size, last = values
        if size > 0 and last > 0:
            _keep(entry.cosines, dot / (size * last))

    return take


def _readable(entry: Optimizer) -> list[Any]:
    """Those of its parameters that are read: on the CPU; or, where the first is on a GPU, a few on that one."""
    living = [parameter for ref in entry.chosen if (parameter := ref()) is not None and id(parameter) in parameters]
    dense = [p for p in living if not p.is_sparse and p.is_floating_point()]
    if not dense or not gpu.away(dense[0]):
        return [p for p in dense if p.is_cpu]
    found, room = [], ON_GPU
    for parameter in dense:
        if parameter.device == dense[0].device and parameter.numel() <= room:
            found.append(parameter)
            room -= int(parameter.numel())
    return found


def _norm(torch: Any, tensor: Any) -> Any:
    return torch.linalg.vector_norm(tensor.detach().float())


def _numbers(tensors: list[Any], take: Callable[[list[float]], None]) -> None:
    """Their values: now, or when the GPU has come to them."""
    if gpu.away(tensors[0]):
        gpu.read(tensors, take)
    else:
        take([float(tensor) for tensor in tensors])


def reached(leaves: list[Any]) -> None:
    """Parameters that the graph of a loss ends in; also such as no optimizer has."""
    for leaf in leaves:
        if not gpu.plain(leaf):
            continue
        found = parameters.get(id(leaf))
        if found is None or found.ref() is not leaf:
            if len(parameters) > 8000:
                return
            found = parameters[id(leaf)] = Parameter(leaf, None)
        found.in_graph += 1


def check_cleared(optimizer: Optimizer) -> None:
    """At the first backward after a step: are the gradients of the step before still there?"""
    torch = sys.modules["torch"]
    held = [p.grad for p in _readable(optimizer)[:4] if p.requires_grad and p.grad is not None]
    held = [grad for grad in held if not grad.is_sparse and gpu.plain(grad)]

    def take(values: list[float]) -> None:
        optimizer.tried += 1
        optimizer.stale += any(value != 0.0 for value in values)

    if not held:
        take([])
        return
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        _numbers([grad.any() for grad in held], take)


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
