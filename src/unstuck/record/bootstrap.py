"""Starts recording in one process, and again in each forked child."""

import os
import sys

from . import attempts, ends, environment, facts, flight, imports, probes, signals
from . import layout as at

SEAMS = {  # module waited for: (our module, its installer)
    "torch.utils.data.dataloader": ("loader", "install"),
    "torchdata.stateful_dataloader.stateful_dataloader": ("loader", "install_stateful"),
    "torch.utils.data._utils.fetch": ("fetch", "install"),
    "torch.utils.data._utils.signal_handling": ("fetch", "install_worker"),
    "torch.autograd": ("backward", "install"),
    "torch.optim.optimizer": ("optimizer", "install"),
}
_folder = ""


def start(folder, site=None):
    """Begin recording into `folder`; `site` is the folder on PYTHONPATH that children must inherit."""
    global _folder
    _folder = folder
    _begin_process(forked=False)
    if site is not None:
        environment.keep(site)
    os.register_at_fork(after_in_child=_after_fork)
    attempts.install()
    ends.install()
    for name, (module, installer) in SEAMS.items():
        imports.when_imported(name, _installer(module, installer))


def stop():
    """Take every hook out again."""
    probes.remove_all()
    signals.disarm()


def _installer(module, name):
    def install(torch_module):
        import importlib

        return getattr(importlib.import_module("." + module, __package__), name)(torch_module)

    return install


def _begin_process(forked):
    stem = flight.open_file(_folder, forked)
    facts.start(stem + at.FACTS)
    w = flight.words
    rank = os.environ.get("RANK", "")
    if rank.isdigit() and "WORLD_SIZE" in os.environ:
        w[at.W_RANK] = int(rank)
    w[at.W_ROLE] = at.ROLES.index("helper" if forked else "unknown")
    try:
        signals.arm(stem)
    except Exception as fault:  # ValueError: not in the main thread of the main interpreter
        probes.off("signals", fault)


def _after_fork():
    if not _folder or "recorder" in probes.OFF:
        return
    try:
        _begin_process(forked=True)
    except Exception as fault:
        probes.off("recorder", fault)


def self_test():
    """Seams as they are now: name and "on", "waiting" (module not imported), or why it is off."""
    state = {}
    for name in SEAMS:
        if "seam " + name in probes.OFF:
            state[name] = probes.OFF["seam " + name]
        else:
            state[name] = "on" if name in sys.modules else "waiting"
    return state
