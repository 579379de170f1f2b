"""Seam: the backward pass. `Tensor.backward` calls `torch.autograd.backward`, so one wrapper serves both.

In place only in full steps: in the others `torch.autograd.backward` is torch's own again.
"""

import sys
from functools import wraps

from . import flight, probes
from . import layout as at


def install(module):
    """`module` is torch.autograd."""
    original = module.backward
    torch = sys.modules["torch"]  # still importing: it has no `compiler` yet

    @wraps(original)
    def backward(*arguments, **options):
        if torch.compiler.is_dynamo_compiling():
            return original(*arguments, **options)
        try:
            flight.enter(at.BACKWARD)
        except Exception as fault:
            probes.off("backward", fault)
        try:
            return original(*arguments, **options)
        finally:
            try:
                flight.enter(at.BETWEEN)
            except Exception as fault:
                probes.off("backward", fault)

    def change(full):
        if module.backward is (original if full else backward):  # not if somebody has wrapped it since
            module.backward = backward if full else original

    def remove():
        flight.when_full_changes.pop("backward", None)
        change(False)

    change(True)
    flight.when_full_changes["backward"] = change
    probes.on("backward", remove)
