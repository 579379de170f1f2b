"""Units that never answer, and units that always answer the same: gathered over sampled batches, from saved results."""

from __future__ import annotations

from math import exp, tanh

from ... import gpu
from . import graph_reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAYERS = 64
ELEMENTS = 1 << 17
"""Of an activation that are looked at."""
ON_GPU = 1 << 14
"""… where it must be copied first."""
FLAT = {"sigmoid": 1 / (1 + exp(-5.0)), "tanh": tanh(3.0)}
"""Results beyond which a bounded activation is flat: of inputs of 5 and 3."""
BLOCK = 25
"""Batches in a block: units can die on the way, so the last one or two blocks are counted for themselves."""
layers: dict[int, Layer] = {}


class Layer:
    """One activation, by its place in the forward pass."""

    __slots__ = (
        "alive",
        "batches",
        "before",
        "early",
        "gated",
        "held",
        "kind",
        "late",
        "name",
        "recent",
        "saturated",
        "shape",
        "zero",
    )

    def __init__(self, kind: str, name: str, shape: list[int]) -> None:
        self.kind, self.name, self.shape = kind, name, shape
        self.alive: Any = None
        self.batches = 0
        self.zero = self.saturated = 0.0
        self.before: Any = None
        self.recent: Any = None
        self.held = 0
        self.early = self.late = 0.0
        self.gated = False

    def plain(self, place: int) -> dict[str, object]:
        dead = 0 if self.alive is None else int((~self.alive).sum())
        units = 0 if self.alive is None else int(self.alive.numel())
        return {
            "place": place,
            "kind": self.kind,
            "name": self.name,
            "shape": self.shape,
            "batches": self.batches,
            "units": units,
            "dead": dead,
            "zero": self.zero / self.batches if self.batches else 0.0,
            "saturated": self.saturated / self.batches if self.batches else 0.0,
            "late_batches": self.held + (BLOCK if self.before is not None else 0),
            "late_dead": self._late_dead(),
            "early_saturated": self.early,
            "late_saturated": self.late,
            "gated": self.gated,
        }

    def take_alive(self, active: Any) -> None:
        self.alive = active if self.alive is None else self.alive | active
        if self.held >= BLOCK:
            self.before, self.recent, self.held = self.recent, None, 0
        self.recent = active if self.recent is None else self.recent | active
        self.held += 1

    def take_flat(self, share: float) -> None:
        self.saturated += share
        self.early += share / 8 if self.batches <= 8 else 0.0
        self.late += (share - self.late) / min(self.batches, BLOCK)

    def odd(self) -> bool:
        """Worth to be looked up where it is written."""
        return self.late > 0.4 or (self.recent is not None and 2 * self._late_dead() > self.recent.numel())

    def _late_dead(self) -> int:
        if self.recent is None:
            return 0
        active = self.recent if self.before is None else self.recent | self.before
        return int((~active).sum())


def note(graph: Any, names: Any) -> None:
    """Take in one reading of the graph. Its activations are told apart by their order, so the graph must be alike."""
    copied: list[tuple[Layer, Any]] = []
    for place, (_, kind, node) in enumerate(graph.activations[:LAYERS]):
        if kind not in ("relu", "sigmoid", "tanh"):
            continue
        result = graph_reading.saved(node, "_saved_result")
        if result is None or result.dim() < 2 or not result.is_floating_point():
            continue
        known = layers.get(place)
        shape = [int(size) for size in result.shape]
        if known is None or known.kind != kind or _units(known.shape) != _units(shape):
            known = layers[place] = Layer(kind, _name(node, names), shape)
        known.gated = known.gated or node in graph.gates
        if gpu.away(result):
            copied.append((known, gpu.thinned(result, ON_GPU, _unit_dim(result))))
        elif gpu.near(result):
            _take(known, result)
    if copied:
        gpu.bring([part for _, part in copied], lambda parts: _take_all([layer for layer, _ in copied], parts))


def _take_all(copied: list[Layer], parts: list[Any]) -> None:
    for layer, part in zip(copied, parts, strict=True):
        _take(layer, part)


def _take(layer: Layer, result: Any) -> None:
    result = result.detach()
    if result.numel() > ELEMENTS:
        result = result[: max(1, result.shape[0] * ELEMENTS // result.numel())]
    layer.batches += 1
    if layer.kind == "relu":
        unit = _unit_dim(result)
        others = [dim for dim in range(result.dim()) if dim != unit]
        active = (result > 0).any(dim=others[0]) if len(others) == 1 else (result > 0).amax(dim=others)
        layer.take_alive(active)
        layer.zero += float((result == 0).float().mean())
        return
    limit = FLAT[layer.kind]
    flat = (result > limit) | (result < 1 - limit) if layer.kind == "sigmoid" else result.abs() > limit
    layer.take_flat(float(flat.float().mean()))


def _unit_dim(result: Any) -> int:
    """Channels of images come second; everywhere else units come last."""
    return 1 if result.dim() >= 4 else int(result.dim()) - 1


def _units(shape: list[int]) -> int:
    return shape[1] if len(shape) >= 4 else shape[-1]


def _name(node: Any, names: Any) -> str:
    """The layer whose output it is applied to: the nearest parameter behind it."""
    waiting, seen = [node], {node}
    for _ in range(24):
        if not waiting:
            break
        here = waiting.pop(0)
        if graph_reading.name_of(here).endswith(graph_reading.LEAF):
            return str(names.name(here.variable)).rpartition(".")[0]
        for following, _ in here.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return ""
