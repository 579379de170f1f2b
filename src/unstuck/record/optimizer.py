"""Seam: the optimizer's step, through torch's own global hooks. A training step ends here."""

import sys

from . import fetch, flight, probes
from . import layout as at


def install(module):
    """`module` is torch.optim.optimizer."""
    torch = sys.modules["torch"]

    def before(optimizer, arguments, options):
        if torch.compiler.is_compiling():
            return
        try:
            flight.enter(at.OPTIMIZER)
        except Exception as fault:
            probes.off("optimizer", fault)

    def after(optimizer, arguments, options):
        if torch.compiler.is_compiling():
            return
        try:
            stepped()
        except Exception as fault:
            probes.off("optimizer", fault)

    handles = (
        module.register_optimizer_step_pre_hook(before),
        module.register_optimizer_step_post_hook(after),
    )

    def remove():
        for handle in handles:
            handle.remove()

    probes.on("optimizer", remove)


def stepped():
    """Several optimizers may step on one batch: that is one training step."""
    flight.enter(at.BETWEEN)
    w = flight.words
    if not fetch.stepped or not w[at.W_LOADERS]:
        flight.step_ended()
        fetch.stepped = True
        if fetch.new_pass:
            fetch.new_pass = False
            w[at.W_EPOCH] += 1
