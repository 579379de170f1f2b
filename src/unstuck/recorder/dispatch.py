"""Who hears which event, and the one way a probe is called: guarded, unseen by the compiler, measured, on one thread.

Hooks call `emit` outside their fast path only. A probe's module is imported at the first event it wants.
"""

from __future__ import annotations

import importlib

from . import governor, guard, hiding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .probe import Probe

PROBES = {  # name: module beneath `probes`, class
    "passes": ("data.passes", "Passes"),
    "fingerprints": ("data.fingerprints", "Fingerprints"),
    "data": ("data.batch_statistics", "BatchStatistics"),
    "aliases": ("data.aliases", "Aliases"),
    "handles": ("data.shared_handles", "SharedHandles"),
    "dataset state": ("data.dataset_state", "DatasetState"),
    "waits": ("pace.data_waits", "DataWaits"),
    "copies": ("pace.gpu_copies", "GpuCopies"),
    "failures": ("death.failures", "Failures"),
    "learning": ("learning.learning", "LearningProbe"),
    "graph": ("memory.graph_growth", "GraphGrowth"),
    "device": ("memory.device", "DeviceMemory"),
    "growth": ("memory.growth", "Growth"),
    "loops": ("loops.describe", "Loops"),
}
LISTENERS: dict[str, tuple[str, ...]] = {  # event: who hears it, in this order
    # Of loaders, in the process that draws from them. `loading` is a loading.Loading.
    "pass_began": ("passes", "waits", "dataset state", "handles"),  # (loading, iterator)
    "pass_ended": ("passes", "aliases"),  # (loading, batches): it came to its end
    "pass_left": ("aliases",),  # (loading): another one begins, or it is over
    "batch_looked_at": ("fingerprints", "passes", "aliases", "data", "copies"),  # (loading, iterator, batch)
    "batch_asked": ("aliases", "handles"),  # (iterator), while a probe `watch`es
    "batch_fetched": ("aliases", "handles"),  # (iterator), the same
    "batch_failed": ("failures",),  # (iterator, error)
    "waited_much": ("waits",),  # (loading)
    # In a worker.
    "worker_began": ("failures", "handles"),  # ()
    "fetch_began": ("dataset state", "handles"),  # (fetcher)
    "fetch_ended": ("handles",),  # ()
    "sample_failed": ("failures",),  # (index, error)
    # Of steps, in sampled ones.
    "before_backward": ("graph", "device", "learning"),  # (root or None, frame)
    "before_step": ("learning",),  # (optimizer)
    "after_step": ("learning",),  # (optimizer)
    "losses_read": ("learning",),  # (values, frame or None)
    "loss_stands_out": ("learning",),  # (root, value, frame)
    "sampling_changed": ("learning",),  # (full)
    "optimizer_built": ("learning",),  # (optimizer, frame)
    "gradients_clipped": ("learning",),  # (norm, limit)
    "scheduler_stepped": ("learning",),  # (scheduler)
    "model_compiled": ("learning",),  # ()
    # What the supervisor asks for.
    "asked_loops": ("loops",),  # (frame)
    "asked_growth": ("growth",),  # (frame)
    "process_failed": ("failures",),  # (error)
}


class Dispatch:
    """The probes of this process."""

    __slots__ = ("_listening", "probes")

    def __init__(self) -> None:
        self.probes: dict[str, Probe] = {}
        self._listening: dict[str, list[tuple[Probe, Any]]] = {}

    def probe(self, name: str) -> Any:
        """The probe of that name, made now if there is none. Raises what its module raises."""
        known = self.probes.get(name)
        if known is None:
            module, kind = PROBES[name]
            with hiding.Hidden():
                made = importlib.import_module(f"{__package__}.probes.{module}")
                hiding.pass_over_ours(__package__)
            known = self.probes[name] = getattr(made, kind)()
            guard.on(name, known.remove)
        return known

    def emit(self, event: str, *arguments: Any) -> None:
        """Have everybody hear it who wants to."""
        listening = self._listening.get(event)
        if listening is None:
            listening = self._listen(event)
        with governor.Reading() as reading:
            for probe, hear in listening:
                if probe.name in guard.OFF:
                    continue
                try:
                    if event in probe.governed and not governor.allows(probe.name):
                        probe.missed(event)
                    else:
                        hear(*arguments)
                except Exception as fault:
                    guard.off(probe.name, fault)
                reading.spent_by(probe.name)

    def _listen(self, event: str) -> list[tuple[Probe, Any]]:
        found = []
        for name in LISTENERS[event]:
            if name in guard.OFF:
                continue
            try:
                probe = self.probe(name)
                found.append((probe, getattr(probe, event)))
            except Exception as fault:
                guard.off(name, fault)
        self._listening[event] = found
        return found

    def forget(self) -> None:
        """In a forked child. The probes stay, empty: they may hold what only their parent may free."""
        for probe in self.probes.values():
            _each(probe, "forget")

    def last(self) -> None:
        for probe in self.probes.values():
            _each(probe, "last")


def _each(probe: Probe, event: str) -> None:
    if probe.name in guard.OFF:
        return
    try:
        getattr(probe, event)()
    except Exception as fault:
        guard.off(probe.name, fault)


_dispatch = Dispatch()
emit, probe, forget, last = _dispatch.emit, _dispatch.probe, _dispatch.forget, _dispatch.last
