"""Starts recording in one process, and again in each forked child."""

from __future__ import annotations

import os
import sys

from . import attempts, environment, facts, flight, guard, imports, signals
from . import layout as at
from .probes.death import exit_codes, process_end
from .probes.pace import pickles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

SEAMS = {  # module waited for: (our module, its installer)
    "torch.utils.data.dataloader": ("hooks.dataloader", "install"),
    "torchdata.stateful_dataloader.stateful_dataloader": ("hooks.dataloader", "install_stateful"),
    "torch.utils.data._utils.fetch": ("hooks.fetch", "install"),
    "torch.utils.data._utils.signal_handling": ("hooks.fetch", "install_worker"),
    "torch.autograd": ("hooks.backward", "install"),
    "torch.autograd.graph": ("probes.learning.graph_reading", "watch_hooks"),
    "torch.optim.lr_scheduler": ("probes.learning.schedules", "install_schedulers"),
    "torch.nn.utils.clip_grad": ("probes.learning.schedules", "install_clipping"),
    "torch.amp.grad_scaler": ("probes.learning.schedules", "install_scaler"),
    "torch.optim.optimizer": ("hooks.optimizer", "install"),
    "torch._dynamo.eval_frame": ("probes.learning.observed_steps", "install_compiler"),
}
_folder = ""


def start(folder: str, site: str | None = None) -> None:
    """Begin recording into `folder`; `site` is the folder on PYTHONPATH that children must inherit."""
    global _folder
    facts.start(flight.name_stem(folder) + at.FACTS)  # first of all: a fault from here on can be told
    _begin_process(folder, forked=False)
    _folder = folder
    os.register_at_fork(after_in_child=_after_fork)
    if site is not None:
        _part("environment", environment.keep, site)
    _part("signal handlers", signals.install)
    _part("attempts", attempts.install)
    _part("ends", process_end.install)
    _part("exits", exit_codes.install)
    _part("pickles", imports.when_imported, "multiprocessing.reduction", pickles.install)
    flight.answer = _answer
    for name, (module, installer) in SEAMS.items():
        _part("seam " + name, imports.when_imported, name, _installer(module, installer))


def stop() -> None:
    """Take every hook out again; children forked from here on are not recorded."""
    global _folder
    _folder = ""
    guard.remove_all()
    signals.disarm()


def _answer() -> None:
    """What answers is loaded when first asked for; none of it is for the compiler to see."""
    try:
        from . import hiding

        with hiding.Hidden():
            from . import answers

            answers.give()
    except Exception as fault:
        flight.answer = _silent
        guard.off("answers", fault)


def _silent() -> None:
    flight.words[at.W_REQUEST] = 0


def _part(probe: str, install: Callable[..., object], *arguments: object) -> None:
    try:
        install(*arguments)
    except Exception as fault:
        guard.off(probe, fault)


def _installer(module: str, name: str) -> Callable[[ModuleType], object]:
    def install(torch_module: ModuleType) -> object:
        import importlib

        ours = importlib.import_module("." + module, __package__)
        _part("unseen by the compiler", _pass_over, ours)
        return getattr(ours, name)(torch_module)

    return install


def _pass_over(hook: ModuleType) -> None:
    from . import hiding

    hiding.pass_over((hook, *(sys.modules[name] for name in list(sys.modules) if name.startswith(f"{__package__}."))))


def _begin_process(folder: str, forked: bool) -> None:
    stem = flight.open_file(folder, forked)
    facts.start(stem + at.FACTS)
    w = flight.words
    rank = os.environ.get("RANK", "")
    if rank.isdigit() and "WORLD_SIZE" in os.environ:
        w[at.W_RANK] = int(rank)
    w[at.W_ROLE] = at.ROLES.index("helper" if forked else "unknown")
    _part("signals", signals.arm, stem)


def _after_fork() -> None:
    if not _folder:
        return
    try:
        _begin_process(_folder, forked=True)
    except Exception as fault:
        _run_unrecorded(fault)
    for name in (
        "probes.learning.learning",
        "probes.data.batch_statistics",
        "probes.pace.data_waits",
        "probes.data.aliases",
    ):
        module = sys.modules.get(f"{__package__}.{name}")
        if module is not None:
            _part(name, module.forget)


def _run_unrecorded(fault: Exception) -> None:
    """No flight file for this child (a full disk, most likely): its parent's files tell it, then it is silent."""
    global _folder
    _folder = ""
    guard.off("recorder of a child", fault)
    flight.let_go()
    facts.start(None)
    _part("signals", signals.silence)


def self_test() -> dict[str, str]:
    """Seams as they are now: name and "on", "waiting" (module not imported), or why it is off."""
    state = {}
    for name in SEAMS:
        if "seam " + name in guard.OFF:
            state[name] = guard.OFF["seam " + name]
        else:
            state[name] = "on" if name in sys.modules else "waiting"
    return state
