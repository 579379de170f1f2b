"""What the steps of an optimizer do to its weights: sizes beside the weights, of what can be judged."""

from __future__ import annotations

from statistics import median

from unstuck.recorder.records.learning import Learning, Optimizer, Parameter
from unstuck.rules.learning.measured import owned, update_ratios

NUMEL = 16
"""Fewer weights than that are small by chance."""
ADAPTIVE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Lion", "Adafactor")


def weights(learning: Learning, optimizer: Optimizer | None = None) -> list[Parameter]:
    """Matrices and kernels: biases, gains and what began at 0 change by any factor and mean nothing."""
    return [
        each
        for each in owned(learning)
        if len(each.shape) > 1
        and each.numel >= NUMEL
        and (optimizer is None or each.owner == optimizer.number)
        and each.weights
        and each.weights[0] > 1e-3 * each.numel**0.5
        and each.module != "Embedding"
    ]


def ratio(parameter: Parameter) -> float | None:
    found = update_ratios(parameter)
    return median(found) if found else None


def typical(parameters: list[Parameter]) -> float | None:
    """Median over parameters of the median over steps."""
    found = [value for value in (ratio(each) for each in parameters) if value is not None]
    return median(found) if found else None


def peak(optimizer: Optimizer) -> float:
    return max((rate for _, rate in optimizer.lrs), default=0.0)


def setting(optimizer: Optimizer, name: str) -> float:
    """A number that it was made with; 0 where it has none of that name."""
    value = optimizer.settings.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def describe(optimizer: Optimizer) -> str:
    """SGD with a learning rate of 0.1 and momentum 0.9."""
    momentum = setting(optimizer, "momentum")
    extra = f" and momentum {momentum:g}" if momentum else ""
    return f"{optimizer.kind} with a learning rate of {peak(optimizer):g}{extra}"
