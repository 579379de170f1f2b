"""Copies of what a training had when it went well: weights with the optimizer's state, and running statistics."""

from __future__ import annotations

import copy
from typing import Any

import torch

STEPS_BETWEEN = 100  # a copy costs about as much as an optimizer step: spread over so many it is not felt


def weights_of(optimizer: Any) -> list[tuple[Any, Any]]:
    """Each parameter, and a copy of it."""
    return [(p, p.detach().clone()) for group in optimizer.param_groups for p in group["params"]]


def put_back(weights: list[tuple[Any, Any]]) -> None:
    with torch.no_grad():
        for parameter, value in weights:
            parameter.copy_(value)


class Snapshot:
    """The weights before a step, and what the optimizer knew about them."""

    def __init__(self, step: int, optimizer: Any) -> None:
        self.step, self._optimizer = step, optimizer
        self._weights = weights_of(optimizer)
        self._state = {p: copy.deepcopy(optimizer.state[p]) for p, _ in self._weights if p in optimizer.state}

    def restore(self) -> None:
        put_back(self._weights)
        for parameter, _ in self._weights:
            self._optimizer.state.pop(parameter, None)
            if parameter in self._state:
                self._optimizer.state[parameter] = copy.deepcopy(self._state[parameter])


class Snapshots:
    """The last two: of the newer one it may only later be known that the step was bad."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._kept: list[Snapshot] = []

    def before(self, step: int) -> None:
        """A step is about to be made: keep the weights if it is time."""
        if not self._kept or step >= self._kept[-1].step + STEPS_BETWEEN:
            self._kept = [*self._kept[-1:], Snapshot(step, self._optimizer)]

    def back_from(self, step: int) -> int | None:
        """Go back to what was kept last before this step went wrong; gives the step that was."""
        chosen = next((kept for kept in reversed(self._kept) if kept.step < step), None) or next(iter(self._kept), None)
        if chosen is None:
            return None
        chosen.restore()
        self._kept = [kept for kept in self._kept if kept.step <= chosen.step]
        return chosen.step


class GoodBuffers:
    """A bad batch has gone through the model before its gradient is seen: what BatchNorm has learned of it stays."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._kept: dict[str, Any] = {}
        self._kept_at = -STEPS_BETWEEN
        self.before(0)

    def before(self, step: int) -> None:
        if step >= self._kept_at + STEPS_BETWEEN:
            self._kept_at = step
            finite = {name: buffer for name, buffer in self._floating() if _finite(buffer)}
            self._kept.update((name, buffer.detach().clone()) for name, buffer in finite.items())

    def mend(self) -> list[str]:
        """Those that are NaN or Inf become what they were when last kept; gives their names."""
        broken = [(name, buffer) for name, buffer in self._floating() if name in self._kept and not _finite(buffer)]
        with torch.no_grad():
            for name, buffer in broken:
                buffer.copy_(self._kept[name])
        return [name for name, _ in broken]

    def _floating(self) -> list[tuple[str, Any]]:
        return [(name, buffer) for name, buffer in self._model.named_buffers() if buffer.is_floating_point()]


def _finite(tensor: Any) -> bool:
    return bool(torch.isfinite(tensor).all())
