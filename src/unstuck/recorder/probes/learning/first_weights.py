"""How a parameter began: some of its elements, whether its rows are alike, whether its weights are fresh."""

from __future__ import annotations

import weakref
from typing import Any, Literal

from ... import gpu

ELEMENTS = 1_000_000
"""A larger parameter is only sampled."""
ON_GPU, MATRICES = 1 << 14, 128
"""Elements that are copied of one that is on a GPU, and of how many."""
SAMPLE = 12
UNTOUCHED = 4
"""In-place writes that making a layer and giving it its first weights can take; a training makes many more."""


class State:
    """How one parameter began."""

    __slots__ = ("_copies", "alike", "called", "first", "fresh", "idle", "ref", "still", "version", "zero")

    def __init__(self, parameter: Any, copies: gpu.Copies) -> None:
        self.ref, self._copies = weakref.ref(parameter), copies
        self.version = int(parameter._version)
        self.first = sample(parameter)
        self.called = self.idle = 0
        """Observed steps in which its module was called; of these, without a graph being recorded."""
        self.still = self.alike = self.zero = self.fresh = False
        if not gpu.away(parameter):
            self.take(parameter)

    def take(self, value: Any) -> None:
        self.alike = alike(value)
        self.zero = not bool(value.detach().any()) if self.alike else False
        self.fresh = self.version <= UNTOUCHED and fresh(value)

    def moved(self) -> bool:
        parameter = self.ref()
        if parameter is None:
            return True
        return int(parameter._version) != self.version or sample(parameter) != self.first

    def still_alike(self) -> bool:
        """Its rows are the same to this day; of one on a GPU, as it was when last asked."""
        parameter = self.ref()
        if not self.alike or parameter is None:
            return False
        if not gpu.away(parameter):
            return alike(parameter, 0.01)
        self._copies.bring([gpu.thinned(parameter.detach(), ON_GPU, -1)], self._look)
        return self.still

    def _look(self, copies: list[Any]) -> None:
        self.still = alike(copies[0], 0.01)

    def fields(self, held: dict[int, int]) -> dict[str, Any]:
        """What the record of a parameter says of this."""
        parameter = self.ref()
        if parameter is None:
            return {}
        moved = self.moved()
        rows: Literal["", "same", "zero"] = ("zero" if self.zero else "same") if self.alike else ""
        return {
            "fresh": self.fresh and not (moved and int(parameter._version) > self.version + UNTOUCHED),
            "moved": moved,
            "alike": rows,
            "still_alike": self.still_alike(),
            "called": self.called,
            "idle": self.idle,
            "trainable": bool(parameter.requires_grad),
            "is_parameter": type(parameter).__name__ == "Parameter",
            "held": held.get(id(parameter)),
        }


def bring(states: list[State], copies: gpu.Copies) -> None:
    """Those of a GPU, some elements of each."""
    found = [(state, value) for state in states if (value := state.ref()) is not None]
    chosen = [(state, value) for state, value in found if value.dim() >= 2 and not value.is_sparse][:MATRICES]
    here = [(state, value) for state, value in chosen if value.device == chosen[0][1].device]

    def take(parts: list[Any]) -> None:
        for (state, _), part in zip(here, parts, strict=True):
            state.take(part)

    if here:
        copies.bring([gpu.thinned(value.detach(), ON_GPU, -1) for _, value in here], take)


def sample(parameter: Any) -> tuple[float, ...] | None:
    """Some of its elements; None where reading them would wait for a device."""
    value = parameter.detach()
    if not gpu.near(value) or value.is_sparse or not value.is_floating_point():
        return None
    flat = value.reshape(-1) if value.is_contiguous() else value.flatten()
    return tuple(flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE].tolist())


def _is_matrix(value: Any, least: int) -> bool:
    plain = value.device.type == "cpu" and value.dim() >= 2 and not value.is_sparse
    return bool(plain and least <= value.numel() <= ELEMENTS)


def alike(parameter: Any, within: float = 0.0) -> bool:
    """All rows of the matrix are the same; later `within` a share of its largest: kernels round rows apart."""
    value = parameter.detach()
    if not _is_matrix(value, 4) or value.shape[0] < 2:
        return False
    if not within and not bool((value[0] == value[1]).all()):
        return False
    return bool((value - value[:1]).abs().max() <= within * value.abs().max())


def fresh(parameter: Any) -> bool:
    """It still has random first weights: few writes, and values spread evenly or by a bell curve, as no training
    leaves them."""
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
