"""How a parameter began: some of its elements, whether its rows are alike, whether its weights are fresh."""

from __future__ import annotations

import weakref

from ... import gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ELEMENTS = 1_000_000
"""A larger parameter is only sampled."""
ON_GPU, MATRICES = 1 << 14, 128
"""Elements that are copied of one that is on a GPU, and of how many."""
SAMPLE = 12
UNTOUCHED = 4
"""In-place writes that making a layer and giving it its first weights can take; a training makes many more."""


class State:
    """How one parameter began."""

    __slots__ = ("alike", "called", "first", "fresh", "idle", "ref", "still", "version", "zero")

    def __init__(self, parameter: Any) -> None:
        self.ref = weakref.ref(parameter)
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

    def still_alike(self) -> bool:
        """Its rows are the same to this day; of one on a GPU, as it was when last asked."""
        parameter = self.ref()
        if not self.alike or parameter is None:
            return False
        if not gpu.away(parameter):
            return alike(parameter, 0.01)
        gpu.bring([gpu.thinned(parameter.detach(), ON_GPU, -1)], self._look)
        return self.still

    def _look(self, copies: list[Any]) -> None:
        self.still = alike(copies[0], 0.01)

    def moved(self) -> bool:
        parameter = self.ref()
        if parameter is None:
            return True
        return int(parameter._version) != self.version or sample(parameter) != self.first


def bring(states: list[State]) -> None:
    """Those of a GPU, some elements of each."""
    found = [(state, parameter) for state in states if (parameter := state.ref()) is not None]
    chosen = [(state, value) for state, value in found if value.dim() >= 2 and not value.is_sparse][:MATRICES]
    here = [(state, value) for state, value in chosen if value.device == chosen[0][1].device]
    if here:
        parts = [gpu.thinned(value.detach(), ON_GPU, -1) for _, value in here]
        gpu.bring(parts, lambda copies: _take([state for state, _ in here], copies))


def _take(states: list[State], parts: list[Any]) -> None:
    for state, part in zip(states, parts, strict=True):
        state.take(part)


def sample(parameter: Any) -> tuple[float, ...] | None:
    """Some of its elements; None where reading them would wait for a device."""
    value = parameter.detach()
    if not gpu.near(value) or value.is_sparse or not value.is_floating_point():
        return None
    flat = value.reshape(-1) if value.is_contiguous() else value.flatten()
    return tuple(flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE].tolist())


def alike(parameter: Any, within: float = 0.0) -> bool:
    """All rows of the matrix are the same; later `within` a share of its largest: kernels round rows apart."""
    value = parameter.detach()
    if value.device.type != "cpu" or value.dim() < 2 or value.shape[0] < 2 or value.is_sparse:
        return False
    if value.numel() < 4 or value.numel() > ELEMENTS:
        return False
    if not within and not bool((value[0] == value[1]).all()):
        return False
    return bool((value - value[:1]).abs().max() <= within * value.abs().max())


def fresh(parameter: Any) -> bool:
    """It still has random first weights: few writes, and values spread evenly or by a bell curve, as no training
    leaves them."""
    value = parameter.detach()
    if value.device.type != "cpu" or value.dim() < 2 or not value.is_floating_point() or value.is_sparse:
        return False
    if value.numel() < 24 or value.numel() > ELEMENTS:
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
