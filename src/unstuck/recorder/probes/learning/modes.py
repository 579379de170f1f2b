"""How the dropouts and batch norms of each trained module were set, in the steps that were observed."""

from __future__ import annotations

from typing import Any

from ... import gpu, objects
from ...hooks import modules as seam
from ...records.learning import Mode
from . import layers
from .calls import Call, Observation

ROOTS = 8
KEPT = 24


class Modes:
    def __init__(self, copies: gpu.Copies) -> None:
        self._copies = copies
        self.by_root: dict[str, list[Mode]] = {}
        self._tracked: dict[int, float] = {}
        """Batches that a batch norm on a GPU has seen, by its module."""

    @property
    def idle(self) -> bool:
        """A module was last seen in eval mode."""
        return any(not history[-1].training for history in self.by_root.values())

    def note(self, observation: Observation, names: dict[int, str]) -> None:
        last = _last_calls(observation)
        roots: dict[int, tuple[Any, list[Call]]] = {}
        for call in last.values():
            module, outermost = call.module(), call.outermost()
            if module is not None and outermost is not None and seam.regularizes(module):
                roots.setdefault(id(outermost), (outermost, []))[1].append(call)
        for root, calls in roots.values():
            own = layers.parameters(root)
            name = names.get(id(root)) or objects.class_name(type(root))
            trained = any(p.requires_grad and id(p) in observation.leaves for p in own)
            if not trained or (name not in self.by_root and len(self.by_root) >= ROOTS):
                continue
            outer = last.get(id(root))
            training = outer.training if outer is not None else layers.is_training(root)
            idle = [call for call in calls if not call.training]
            mode = Mode(
                step=observation.step,
                training=training,
                idle=len(idle),
                of=len(calls),
                never_updated=sum(1 for call in calls if self._never_updated(call.module())),
                kinds=sorted({objects.class_name(type(call.module())) for call in idle}),
                frozen=sum(1 for p in own if not p.requires_grad),
            )
            history = self.by_root.setdefault(name, [])
            history.append(mode)
            if len(history) > KEPT:
                del history[8:-8:2]

    def _never_updated(self, module: Any) -> bool:
        count = layers.buffer(module, "num_batches_tracked")
        if not gpu.plain(count):
            return False
        if gpu.away(count):
            self._copies.read([count], lambda values: self._tracked.__setitem__(id(module), values[0]))
            return self._tracked.get(id(module)) == 0
        return gpu.near(count) and int(count) == 0


def _last_calls(observation: Observation) -> dict[int, Call]:
    """Of each module the last call with a graph, before the first backward pass."""
    ended = observation.ended
    return {id(call.module()): call for call in observation.calls if call.grad and (ended < 0 or call.came < ended)}
