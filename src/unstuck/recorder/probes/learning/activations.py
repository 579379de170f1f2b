"""Units that never answer, and units that always answer the same: gathered over sampled batches, from saved results."""

from __future__ import annotations

from math import exp, tanh
from typing import Any

from ... import gpu
from ...records import Site
from ...records.learning import Activation, ActivationKind
from . import graph_reading
from .graph_reading import Graph, SavedTensors
from .naming import Names

MAX_LAYERS = 64
MAX_ELEMENTS = 1 << 17  # of an activation that are looked at
GPU_ELEMENTS = 1 << 14  # … where it must be copied first
FLAT = {"sigmoid": 1 / (1 + exp(-5.0)), "tanh": tanh(3.0)}  # beyond these results: of inputs of 5 and 3
BLOCK = 25  # batches; units can die on the way, so the last one or two blocks are counted for themselves


class Layer:
    """One activation, by its place in the forward pass."""

    def __init__(self, kind: ActivationKind, name: str, shape: list[int]) -> None:
        self.kind, self.name, self.shape = kind, name, shape
        self.alive: Any = None
        self.batches = 0
        self.zero = self.saturated = 0.0
        self.block_before: Any = None
        self.block: Any = None  # units that were active in the present block of batches
        self.in_block = 0  # batches in it so far
        self.early = self.late = 0.0
        self.gated = False

    def take(self, result: Any) -> None:
        result = result.detach()
        if result.numel() > MAX_ELEMENTS:
            result = result[: max(1, result.shape[0] * MAX_ELEMENTS // result.numel())]
        self.batches += 1
        if self.kind == "relu":
            unit = _unit_dim(result)
            others = [dim for dim in range(result.dim()) if dim != unit]
            self._take_alive((result > 0).any(dim=others[0]) if len(others) == 1 else (result > 0).amax(dim=others))
            self.zero += float((result == 0).float().mean())
            return
        limit = FLAT[self.kind]
        flat = (result > limit) | (result < 1 - limit) if self.kind == "sigmoid" else result.abs() > limit
        share = float(flat.float().mean())
        self.saturated += share
        self.early += share / 8 if self.batches <= 8 else 0.0
        self.late += (share - self.late) / min(self.batches, BLOCK)

    def _take_alive(self, active: Any) -> None:
        self.alive = active if self.alive is None else self.alive | active
        if self.in_block >= BLOCK:
            self.block_before, self.block, self.in_block = self.block, None, 0
        self.block = active if self.block is None else self.block | active
        self.in_block += 1

    def odd(self) -> bool:
        """Worth looking up where it is written."""
        return self.late > 0.4 or (self.block is not None and 2 * self._late_dead() > self.block.numel())

    def _late_dead(self) -> int:
        if self.block is None:
            return 0
        active = self.block if self.block_before is None else self.block | self.block_before
        return int((~active).sum())

    def record(self, number: int, site: Site | None) -> Activation:
        times = max(1, self.batches)
        return Activation(
            place=number, kind=self.kind, name=self.name, shape=self.shape, batches=self.batches,
            units=0 if self.alive is None else int(self.alive.numel()),
            dead=0 if self.alive is None else int((~self.alive).sum()),
            zero=self.zero / times, saturated=self.saturated / times,
            late_batches=self.in_block + (BLOCK if self.block_before is not None else 0), late_dead=self._late_dead(),
            early_saturated=self.early, late_saturated=self.late, gated=self.gated, site=site,
        )  # fmt: skip


class Activations:
    """Those of the forward pass, in its order."""

    def __init__(self, saved: SavedTensors, names: Names, copies: gpu.Copies) -> None:
        self._saved, self._names, self._copies = saved, names, copies
        self.layers: dict[int, Layer] = {}

    def note(self, graph: Graph) -> None:
        """Take in one reading of the graph. Its activations are told apart by their order, so it must be alike."""
        copied: list[tuple[Layer, Any]] = []
        for number, (_, kind, node) in enumerate(graph.activations[:MAX_LAYERS]):
            result = self._saved.of(node, "_saved_result") if kind in ("relu", "sigmoid", "tanh") else None
            if result is None or result.dim() < 2 or not result.is_floating_point():
                continue
            known = self._known(number, kind, node, [int(size) for size in result.shape])
            known.gated = known.gated or node in graph.gates
            if gpu.away(result):
                copied.append((known, gpu.thinned(result, GPU_ELEMENTS, _unit_dim(result))))
            elif gpu.near(result):
                known.take(result)

        def take(parts: list[Any]) -> None:
            for (layer, _), part in zip(copied, parts, strict=True):
                layer.take(part)

        if copied:
            self._copies.bring([part for _, part in copied], take)

    def _known(self, number: int, kind: ActivationKind, node: Any, shape: list[int]) -> Layer:
        known = self.layers.get(number)
        if known is None or known.kind != kind or _units(known.shape) != _units(shape):
            known = self.layers[number] = Layer(kind, graph_reading.layer_behind(node, self._names), shape)
        return known


def _unit_dim(result: Any) -> int:
    """Channels of images come second; everywhere else units come last."""
    return 1 if result.dim() >= 4 else int(result.dim()) - 1


def _units(shape: list[int]) -> int:
    return shape[1] if len(shape) >= 4 else shape[-1]
