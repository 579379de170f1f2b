"""Seam: the backward pass. `Tensor.backward` calls `torch.autograd.backward`, so one wrapper serves both."""

import sys
from functools import wraps

from . import flight, probes
from . import layout as at


def install(module):
    """`module` is torch.autograd."""
    original = module.backward
    torch = sys.modules["torch"]

    @wraps(original)
    def backward(*arguments, **options):
        if torch.compiler.is_compiling():
            return original(*arguments, **options)
        try:
            flight.enter(BACKWARD)
        except Exception as fault:
            probes.off("backward", fault)
        try:
            return original(*arguments, **options)
        finally:
            try:
                flight.enter(BETWEEN)
            except Exception as fault:
                probes.off("backward", fault)

    module.backward = backward
    probes.on("backward", lambda: setattr(module, "backward", original))


BACKWARD, BETWEEN = at.BACKWARD, at.BETWEEN
