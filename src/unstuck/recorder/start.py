"""Starts recording in one process, and again in each forked child."""

from __future__ import annotations

import os
import sys

from . import attempts, environment, flight, guard, imports, journal, signals
from . import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

SEAMS = {  # module waited for: (module of `hooks`, its installer)
    "torch.utils.data.dataloader": ("dataloader", "install"),
    "torchdata.stateful_dataloader.stateful_dataloader": ("dataloader", "install_stateful"),
    "torchdata.nodes.loader": ("nodes", "install"),
    "torchdata.nodes._apply_udf": ("nodes", "install_workers"),
    "torch.utils.data._utils.fetch": ("fetch", "install"),
    "torch.utils.data._utils.signal_handling": ("fetch", "install_worker"),
    "torch.autograd": ("backward", "install"),
    "torch.autograd.graph": ("compiler", "install_saved_tensors"),
    "torch.optim.lr_scheduler": ("around_step", "install_schedulers"),
    "torch.nn.utils.clip_grad": ("around_step", "install_clipping"),
    "torch.amp.grad_scaler": ("around_step", "install_scaler"),
    "torch.optim.optimizer": ("optimizer", "install"),
    "torch._dynamo.eval_frame": ("compiler", "install"),
    "torch.distributed.distributed_c10d": ("collectives", "install"),
    "torch.nn.parallel.distributed": ("collectives", "install_ddp"),
    "unstuck.heal.loader.quarantine": ("healing", "install"),
    "_unstuck.heal.loader.quarantine": ("healing", "install"),
    "threading": ("processes", "install_threads"),
    "subprocess": ("processes", "install_commands"),
    "multiprocessing.process": ("processes", "install_starts"),
    "multiprocessing.util": ("processes", "install_children"),
    "multiprocessing.popen_fork": ("processes", "install_exit_codes"),
    "multiprocessing.popen_forkserver": ("processes", "install_exit_codes"),
    "multiprocessing.reduction": ("processes", "install_pickles"),
    "multiprocessing.connection": ("processes", "install_messages"),
    "multiprocessing.pool": ("processes", "install_tasks"),
    "concurrent.futures.process": ("processes", "install_tasks"),
    "random": ("shuffles", "install"),
}


class Recorder:
    """Where this process records to; nowhere while `folder` is empty."""

    __slots__ = ("folder", "registered")

    def __init__(self) -> None:
        self.folder = ""
        self.registered = False

    def start(self, folder: str, site: str | None = None) -> None:
        """Begin recording into `folder`; `site` is the folder on PYTHONPATH that children must inherit."""
        journal.start(flight.name_stem(folder) + at.RECORDS)  # first of all: a fault from here on can be told
        _begin_process(folder, forked=False)
        self.folder = folder
        if not self.registered:
            os.register_at_fork(after_in_child=self._after_fork)  # for good: there is no way to take it out
            self.registered = True
        if site is not None:
            guard.attempt("environment", environment.keep, site, folder)
        guard.attempt("signal handlers", signals.install)
        guard.attempt("attempts", attempts.install)
        from .hooks import processes

        guard.attempt("ends", processes.install)
        for name in SEAMS:
            guard.attempt("seam " + name, imports.when_imported, name, _installer(name))

    def finish(self) -> None:
        """The watch ends before the process does: write what is left to say, and stop."""
        if self.folder:
            from .hooks import processes

            guard.attempt("end", processes.end.write_the_rest)
        self.stop()
        _forget()

    def stop(self) -> None:
        """Take every hook out again; children forked from here on are not recorded."""
        self.folder = ""
        guard.remove_all()
        signals.disarm()

    def _after_fork(self) -> None:
        if not self.folder:
            return
        try:
            _begin_process(self.folder, forked=True)
        except Exception as fault:
            self._run_unrecorded(fault)
        _forget()

    def _run_unrecorded(self, fault: Exception) -> None:
        """No flight file for this child (a full disk, most likely): its parent's files tell it, then it is silent."""
        self.folder = ""
        guard.off("recorder of a child", fault)
        flight.let_go()
        journal.start(None)
        guard.attempt("signals", signals.silence)


def _forget() -> None:
    """What was measured: it is of this process's parent, or of a watch that is over."""
    for name in ("dispatch", "loading", "stepping", "resting", "hooks.messages"):
        module = sys.modules.get(f"{__package__}.{name}")
        if module is not None:
            guard.attempt(name, module.forget)


def install_seam(name: str, theirs: ModuleType) -> None:
    """Put the hooks on one module in place."""
    import importlib

    module, installer = SEAMS[name]
    ours = importlib.import_module(f"{__package__}.hooks.{module}")
    if name.startswith("torch"):
        guard.attempt("unseen by the compiler", _pass_over)
    getattr(ours, installer)(theirs)


def _installer(name: str) -> Callable[[ModuleType], object]:
    return lambda theirs: install_seam(name, theirs)


def _pass_over() -> None:
    from . import hiding

    hiding.pass_over_ours(__package__)


def _begin_process(folder: str, forked: bool) -> None:
    stem = flight.open_file(folder, forked)
    journal.start(stem + at.RECORDS)
    w = flight.words
    rank = os.environ.get("RANK", "")
    if rank.isdigit() and "WORLD_SIZE" in os.environ:
        w[at.W_RANK] = int(rank)
    w[at.W_ROLE] = at.ROLES.index("helper" if forked else "unknown")
    guard.attempt("signals", signals.arm, stem)


def self_test() -> dict[str, str]:
    """Seams of torch as they are now: name and "on", "waiting" (module not imported), or why it is off."""
    state = {}
    for name in SEAMS:
        if not name.startswith("torch"):
            continue
        if "seam " + name in guard.OFF:
            state[name] = guard.OFF["seam " + name]
        else:
            state[name] = "on" if name in sys.modules else "waiting"
    return state


_recorder = Recorder()
start, stop, finish = _recorder.start, _recorder.stop, _recorder.finish
