"""Who hears which event, and the one way a probe is called: guarded, unseen by the compiler, measured, on one thread.

Hooks call `emit` outside their fast path only. A probe's module is imported at the first event it wants.
"""

from __future__ import annotations

import importlib
import sys

from . import flight, guard, hiding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .probe import Probe

PROBES = {  # name: module beneath `probes`, class
    "passes": ("data.passes", "Passes"),
    "fingerprints": ("data.fingerprints", "Fingerprints"),
    "data": ("data.batch_statistics", "BatchStatistics"),
    "same batches": ("data.same_given", "SameBatches"),
    "aliases": ("data.aliases", "Aliases"),
    "views": ("data.given_views", "GivenViews"),
    "kept": ("data.kept_batches", "KeptBatches"),
    "handles": ("data.shared_handles", "SharedHandles"),
    "shuffles": ("data.shuffled_rows", "ShuffledRows"),
    "dataset state": ("data.dataset_state", "DatasetState"),
    "waits": ("pace.data_waits", "DataWaits"),
    "copies": ("pace.gpu_copies", "GpuCopies"),
    "pickles": ("pace.repeated_pickles", "RepeatedPickle"),
    "first sent": ("data.first_sent", "FirstSentProbe"),
    "failures": ("death.failures", "Failures"),
    "learning": ("learning.learning_probe", "LearningProbe"),
    "graph": ("memory.graph_growth", "GraphGrowth"),
    "device": ("memory.device_memory", "DeviceMemory"),
    "growth": ("memory.growing", "Growth"),
    "loops": ("loops.describe", "Loops"),
    "frameworks": ("frameworks.library_loops", "LibraryLoops"),
}
LISTENERS: dict[str, tuple[str, ...]] = {  # event: who hears it, in this order
    # Of loaders, in the process that draws from them. `loading` is a loading.Loading.
    "pass_began": ("failures", "passes", "dataset state", "handles", "frameworks"),  # (loading, iterator)
    "pass_ended": ("passes", "aliases"),  # (loading, batches): it came to its end
    "pass_left": ("aliases",),  # (loading): another one begins, or it is over
    # (loading, iterator, batch). The last may begin to follow the lines of the step: nothing of ours comes after it.
    "batch_looked_at": ("fingerprints", "passes", "data", "copies", "aliases"),
    "batch_asked": ("aliases", "handles"),  # (iterator), while a probe `watch`es
    "batch_fetched": ("aliases", "handles"),  # (iterator), the same
    "batch_failed": ("failures",),  # (iterator, error)
    "waited_much": ("waits",),  # (loading)
    # In a worker.
    "worker_began": ("failures", "handles"),  # ()
    "fetch_began": ("dataset state", "handles"),  # (fetcher)
    "fetch_ended": ("handles",),  # ()
    "sample_failed": ("failures",),  # (index, error)
    "error_handed_over": ("failures",),  # (error): a worker sends main what did not come out of a fetch
    "workers_failed": ("failures",),  # (error): torch noticed it between two batches, in main
    # Of steps, in sampled ones.
    "derivative_taken": ("learning",),  # (output, frame): by `autograd.grad`, without `create_graph`, in sampled steps
    "gradients_asked": ("learning",),  # (leaves): `autograd.grad` is called for these; the next event is
    "before_backward": ("graph", "device", "learning", "frameworks"),  # (root or None, frame)
    "after_backward": ("learning",),  # ()
    "before_step": ("learning",),  # (optimizer, None: an update written by hand; whether it has a closure)
    "after_step": ("learning",),  # (optimizer or None, its steps)
    # (frame, steps): after one that was sampled, from the second on; where there is no time for it, one in thirty-two
    "stepped_without_loader": ("failures", "loops"),
    "gradients_given": ("learning",),  # (leaves, their gradients): by `autograd.grad`, where updates are made by hand
    # Of what the training does with its data, in sampled steps.
    "model_given": ("data", "same batches"),  # (arguments, frame): the outermost module is called
    # (tensor, frame, plain): weights are, as the graph shows; `plain`: no module is. The last two may follow lines.
    "graph_given": ("data", "same batches", "views", "kept"),
    "rows_asked": ("same batches",),  # (their numbers, frame): nothing but rows of tables is, in a plain model
    "loss_given": ("data",),  # (target or None, op, label that is ignored or None): a loss function was
    "rows_shuffled": ("shuffles",),  # (array or tensor, its rows before, frame): by `random.shuffle`
    # Of losses. A value is handed over once, by one of the three, and in order.
    "losses_read": ("learning",),  # (values, frame of the last; None: of ordinary steps)
    "loss_stands_out": ("learning",),  # (root, value, frame): outside the probe's `limits()`
    "gpu_loss": ("learning",),  # (root, frame, the same before a scaler multiplied it)
    "sampling_changed": ("learning",),  # (full)
    "optimizer_built": ("learning",),  # (optimizer, frame, counts)
    "gradients_clipped": ("learning",),  # (norm, limit, calls since the last of these)
    "scheduler_stepped": ("learning",),  # (scheduler, counts): at its first calls
    "scaler_scaled": ("learning",),  # (scaler)
    "scaler_unscaled": ("learning",),  # (scaler)
    "scaler_updated": ("learning",),  # (scaler)
    "model_compiled": ("learning",),  # (): once
    "saved_tensor_hooks_used": ("learning",),  # (): once
    # What the supervisor asks for.
    "asked_loops": ("learning", "loops"),  # (frame)
    "asked_growth": ("growth",),  # (frame)
    "message_pickled": ("pickles",),  # (what another process is sent, hooks.messages.messages): a large one
    # (what a forked process of the script's own sends, the same as a pickle, the process, [1 until it is enough])
    "child_sends": ("first sent",),
    # How things end.
    "process_failed": ("failures", "loops"),  # (error): a process ends of it
    "task_failed": ("failures",),  # (error): it goes to the process that asked for the task
    "thread_failed": ("failures",),  # (error, thread or None)
    "left_by_exit": ("failures",),  # (status, frame): os._exit
    "child_ended": ("failures",),  # (pid, code): of multiprocessing, not 0
}


class Dispatch:
    """The probes of this process."""

    __slots__ = ("_governor", "_listening", "probes")

    def __init__(self) -> None:
        self.probes: dict[str, Probe] = {}
        self._listening: dict[str, list[tuple[Probe, Any]]] = {}
        self._governor: Any = None

    def begin(self) -> Any:
        """With the first event, not with torch: load what every event needs, and keep the compiler off it."""
        if self._governor is not None:
            return self._governor
        with hiding.Hidden():
            for name in ("governor", "loading", "objects", "user_code"):
                importlib.import_module(f"{__package__}.{name}")
            hiding.pass_over_ours(__package__)
        self._governor = sys.modules[f"{__package__}.governor"]
        return self._governor

    def module(self, name: str) -> Any:
        """One of those that `begin` loads. Not by an import: below compiled code that would be compiled too."""
        if self._governor is None:
            self.begin()
        return sys.modules[f"{__package__}.{name}"]

    def probe(self, name: str) -> Any:
        """The probe of that name, made now if there is none. Raises what its module raises."""
        known = self.probes.get(name)
        if known is None:
            module, kind = PROBES[name]
            with self.begin().LeftOut():
                made = importlib.import_module(f"{__package__}.probes.{module}")
                hiding.pass_over_ours(__package__)
            known = self.probes[name] = getattr(made, kind)()
            guard.on(name, known.remove)
        return known

    def ask(self, name: str, method: str, *arguments: Any) -> Any:
        """One probe asks another, and does not fail with it; None where that is off."""
        if name in guard.OFF:
            return None
        try:
            return getattr(self.probe(name), method)(*arguments)
        except Exception as fault:
            guard.off(name, fault)
            return None

    def emit(self, event: str, *arguments: Any) -> None:
        """Have everybody hear it who wants to."""
        governor = self._governor or self.begin()
        flight.steps()  # counts those that were made while the hooks rested
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
    if probe.name not in guard.OFF:
        guard.attempt(probe.name, getattr(probe, event))


_dispatch = Dispatch()
begin, module, emit, ask = _dispatch.begin, _dispatch.module, _dispatch.emit, _dispatch.ask
probe = _dispatch.probe
forget, last = _dispatch.forget, _dispatch.last
