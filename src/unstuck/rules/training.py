"""What was measured of a training, in plain questions: shared by the rules on learning, numerics and data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite, sqrt
from statistics import fmean, median, pstdev

from unstuck.model import Case, Finding, Where
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Activation, Learning, Loss, LossHead, Optimizer, Parameter

MIN_GRAPHS = 3  # that end in a loss function: the last batch of an epoch may have another shape
MIN_TARGETS = 64  # before the loss of the best constant prediction means something
AT_CONSTANT = 0.95, 1.3  # of that loss: memorizing a few samples gains some per cent, labels unrelated or not
MIN_VALUES_ENDED = 80  # of a loss, in a run that is over …
MIN_VALUES_RUNNING = 1500  # … and in one that goes on: by then it has had its time
MIN_VALUES_DIVERGED, MIN_RISE, MIN_ABOVE_CONSTANT = 12, 1.5, 10.0  # of a loss that was thrown up; both in times
MIN_SATURATION_BATCHES = 12  # before the share of flat values means something
SATURATED_SHARE = 0.5  # of an activation's values
MIN_JUDGED_NUMEL = 16  # smaller weights are small by chance
MIN_ROW_NORM = 0.02  # of a matrix whose first size means something; a usual layer has 0.1 to 1.5
MAX_GRADIENT_RATIO = 100.0  # compared with the weight at the first step: above it the gradient explodes
FIRST_UPDATES = 5  # that are judged singly
MAX_LOW_RATE, MAX_LOW_RATE_ADAPTIVE = 2e-3, 2e-5
MIN_RANDOM_NUMEL = 24  # of a matrix whose spread shows that it was drawn at random

REGRESSION_OPS = ("mse", "squared", "absolute", "smooth_l1", "huber")
SQUARED_OPS = ("mse", "squared")
ADAPTIVE_OPTIMIZERS = frozenset(
    ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Adafactor", "Lion", "Muon")
)


def where(learning: Learning, site: Site | None, *, step: int | None = None, sample: int | None = None) -> Where:
    file, line, function = site or (None, None, None)
    step = learning.steps if step is None else step
    return Where(file=file, line=line, function=function, pid=learning.pid, step=step, sample=sample)


# --- which loss ----------------------------------------------------------------------------------------------


def main_loss(learning: Learning) -> Loss | None:
    """The loss that is computed most often."""
    return max(learning.losses, key=lambda loss: loss.count, default=None)


def loss_site(learning: Learning) -> Site | None:
    """The line that calls backward on it."""
    loss = main_loss(learning)
    return loss.site if loss is not None else None


def loss_of(learning: Learning, head: LossHead) -> Loss | None:
    """The loss whose graph ends in this loss function."""
    return next((loss for loss in learning.losses if loss.site == head.called), None)


def several_losses(learning: Learning) -> bool:
    """A GAN or reinforcement learning, say: no loss alone says how the training goes."""
    return len(learning.optimizers) > 1 or sum(1 for loss in learning.losses if loss.count > 2) > 1


def first_by_loss_function(case: Case, judge: Callable[[Learning, LossHead], Finding | None]) -> Iterator[Finding]:
    """The first finding of each training, over its loss functions that were seen often enough."""
    for learning in case.learnings:
        judged = (judge(learning, head) for head in learning.heads if head.times >= MIN_GRAPHS)
        finding = next((finding for finding in judged if finding is not None), None)
        if finding is not None:
            yield finding


# --- how a loss went -----------------------------------------------------------------------------------------


def first_value(loss: Loss) -> float:
    """Its very first value: where a step throws the loss up, the next ones are no beginning any more."""
    return loss.first[0] if loss.first else 0.0


def start_mean(loss: Loss) -> float:
    """The mean of its first five values: a single one may be chance."""
    return fmean(loss.first[:5]) if loss.first else 0.0


def end_mean(loss: Loss) -> float:
    """The mean of its last tenth."""
    values = curve(loss)
    return fmean(values[-max(3, len(values) // 10) :]) if values else loss.last


def lowest_mean(loss: Loss) -> float:
    """The best mean over a twentieth of the run."""
    values = curve(loss)
    width = max(1, len(values) // 20)
    return min((fmean(values[at : at + width]) for at in range(len(values) - width + 1)), default=loss.last)


def curve(loss: Loss) -> list[float]:
    return [value for _, value in loss.points]


def is_flat(loss: Loss) -> bool:
    """It did not change by more than 2 % from the first third of the run to the last."""
    values = curve(loss)
    third = len(values) // 3
    if third < 3:
        return False
    early, late = fmean(values[:third]), fmean(values[-third:])
    return abs(early - late) <= 0.02 * max(abs(early), abs(late), 1e-12)


def swing(values: Sequence[float]) -> float:
    """The standard deviation, compared with the level."""
    level = abs(median(values)) if values else 0.0
    return pstdev(values) / level if level > 0 and len(values) > 1 else 0.0


def constant_loss(head: LossHead) -> float | None:
    """What the best constant prediction would give, where the loss can be compared with it."""
    best = head.target.constant
    if best is None or not head.bare or head.broadcast or head.target.expanded or best <= 0:
        return None
    return best if head.target.count >= MIN_TARGETS else None


def share_of_constant(learning: Learning, loss: Loss) -> float | None:
    """The loss, as a share of that of the best constant prediction."""
    for head in learning.heads:
        if head.called == loss.site and (best := constant_loss(head)) is not None:
            return end_mean(loss) / best
    return None


def falls_little(learning: Learning, loss: Loss) -> bool:
    """Far less than in a training that learns; adaptive optimizers undo a constant factor: with them not at all."""
    if any(optimizer.kind in ADAPTIVE_OPTIMIZERS for optimizer in learning.optimizers):
        return is_flat(loss) and not has_learned(learning, loss)
    scales = learning.clips.scales if learning.clips is not None else []
    grown = scales[-1] / scales[0] if scales else 1.0  # of what the script multiplies the loss with
    share = share_of_constant(learning, loss)
    return end_mean(loss) > 0.5 * grown * first_value(loss) and (share is None or share > 0.5)


def has_learned(learning: Learning, loss: Loss) -> bool:
    """It is clearly below a constant prediction, or below where it began if that is not known."""
    share = share_of_constant(learning, loss)
    if share is not None:
        return share < 0.8
    start = min(first_value(loss), start_mean(loss))  # a first step may have thrown it up
    return start > 0 and end_mean(loss) < 0.7 * start


def stuck_at_constant(case: Case) -> Iterator[tuple[Learning, LossHead, Loss, float]]:
    """Losses that have come to rest where a constant prediction would be, and what that one gives."""
    enough = MIN_VALUES_ENDED if case.outcome != "running" else MIN_VALUES_RUNNING
    for learning in case.learnings:
        if several_losses(learning):
            continue
        for head in learning.heads:
            loss, best = loss_of(learning, head), constant_loss(head)
            if loss is None or best is None or loss.nonfinite or loss.count < enough:
                continue
            low, high = AT_CONSTANT  # far above it diverges, or has not come down yet
            if low * best <= end_mean(loss) <= high * best and lowest_mean(loss) >= 0.9 * best:
                yield learning, head, loss, best


def worse_than_constant(case: Case) -> Iterator[Learning]:
    """Trainings whose loss ends no lower than that of a constant prediction, however far above it."""
    enough = MIN_VALUES_ENDED if case.outcome != "running" else MIN_VALUES_RUNNING
    for learning in case.learnings:
        for head in learning.heads:
            loss, most = loss_of(learning, head), _constant_at_most(head)
            if loss is None or most is None or several_losses(learning):
                continue
            if loss.count < enough and not _has_diverged(loss, most):
                continue
            if min(end_mean(loss), median(loss.recent or [loss.last])) > most:
                yield learning


def _has_diverged(loss: Loss, constant: float) -> bool:
    """Thrown far above where it began, and above that of a constant prediction: this shows after a few steps. One that
    comes down again has some more."""
    end, lowest = end_mean(loss), lowest_mean(loss) if loss.count < MIN_VALUES_ENDED else 0.0
    risen = end > MIN_RISE * max(first_value(loss), lowest)
    return loss.count >= MIN_VALUES_DIVERGED and risen and end > MIN_ABOVE_CONSTANT * constant


def _constant_at_most(head: LossHead) -> float | None:
    """What a constant prediction gives, or a number that it is surely below."""
    exact, deviation = constant_loss(head), head.target.sd
    if exact is not None:
        return AT_CONSTANT[0] * exact
    if not deviation or not head.bare or head.broadcast or head.target.count < MIN_TARGETS:
        return None
    return {"absolute": deviation, "smooth_l1": deviation, "huber": deviation**2 / 2}.get(head.op)


# --- optimizers, parameters, activations ---------------------------------------------------------------------


def peak_rate(optimizer: Optimizer) -> float:
    return max((rate for _, rate in optimizer.lrs), default=0.0)


def highest_low_rate(optimizer: Optimizer) -> float:
    """A higher one is not low for an optimizer of this kind."""
    return MAX_LOW_RATE_ADAPTIVE if optimizer.kind in ADAPTIVE_OPTIMIZERS else MAX_LOW_RATE


def setting(optimizer: Optimizer, name: str) -> float:
    """A number it was made with; 0 where it has none of that name."""
    value = optimizer.settings.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def optimized(learning: Learning) -> list[Parameter]:
    """Parameters of an optimizer that has stepped."""
    return [parameter for parameter in learning.parameters if parameter.owner is not None]


def judged_weights(learning: Learning, optimizer: Optimizer) -> list[Parameter]:
    """Its matrices and kernels: biases, gains and what began at 0 change by any factor in a healthy run."""
    return [
        parameter
        for parameter in optimized(learning)
        if len(parameter.shape) > 1
        and parameter.numel >= MIN_JUDGED_NUMEL
        and parameter.owner == optimizer.number
        and parameter.weights
        and not _began_near_zero(parameter)
        and parameter.module != "Embedding"
    ]


def _began_near_zero(parameter: Parameter) -> bool:
    """By its elements, or by its rows: a last layer made so small that its first outputs are all but 0."""
    norm, rows = parameter.weights[0], min(parameter.shape[0], parameter.numel // parameter.shape[0])
    return norm <= max(1e-3 * sqrt(parameter.numel), MIN_ROW_NORM * sqrt(rows))


def update_ratios(parameter: Parameter) -> list[float]:
    """Norm of the update compared with the weight's, at each sampled step."""
    return [move / norm for (_, move), norm in zip(parameter.moves, parameter.weights, strict=False) if norm > 0]


def measured_matrices(learning: Learning) -> list[Parameter]:
    return [p for p in optimized(learning) if len(p.shape) > 1 and p.grads and p.weights and p.module != "Embedding"]


def largest_first_update(learning: Learning) -> float:
    """Compared with the weight's own size."""
    firsts = (ratio for matrix in measured_matrices(learning) for ratio in update_ratios(matrix)[:FIRST_UPDATES])
    return max((ratio for ratio in firsts if isfinite(ratio)), default=0.0)


def explodes_at_first(weight: Parameter) -> bool:
    """Its gradient is so large that no learning rate is to blame for the first update."""
    return bool(weight.grads) and weight.grads[0][1] > MAX_GRADIENT_RATIO * weight.weights[0]


def median_gradient(parameter: Parameter) -> float:
    return median(norm for _, norm in parameter.grads) if parameter.grads else 0.0


def layer_of(parameter: Parameter) -> str:
    return parameter.name.rpartition(".")[0]


def random_matrices(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Large enough to tell whether they are still random, and no biases or gains."""
    return [each for each in parameters if len(each.shape) > 1 and each.numel >= MIN_RANDOM_NUMEL]


def is_saturated(activation: Activation) -> bool:
    """A sigmoid or tanh, not a gate, that was flat for most of its values from the first batches on."""
    if activation.kind not in ("sigmoid", "tanh") or activation.gated or activation.batches < MIN_SATURATION_BATCHES:
        return False
    return min(activation.early_saturated, activation.late_saturated, activation.saturated) > SATURATED_SHARE


# --- in words ------------------------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """As a person writes it."""
    if value is None:
        return "?"
    value += 0.0  # no -0
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}" if abs(value) < 100 else f"{value:.4g}"


def course(loss: Loss) -> str:
    """How it went, as evidence."""
    return f"the loss went from {number(first_value(loss))} to {number(end_mean(loss))} in {loss.count:,} steps"


def now(loss: Loss | None) -> str:
    """Where it is, behind what it was compared with."""
    return f"; it is {number(end_mean(loss))} after {loss.count:,} steps" if loss is not None and loss.points else ""


def described(optimizer: Optimizer) -> str:
    """SGD with learning rate 0.1 and momentum 0.9"""
    momentum = setting(optimizer, "momentum")
    rate = f"learning rate {peak_rate(optimizer):g}" if optimizer.lrs else "a learning rate that is not known"
    return f"{optimizer.kind or 'updates written by hand'} with {rate}" + (
        f" and momentum {momentum:g}" if momentum else ""
    )


def line(site: Site | None) -> str:
    return f"{os.path.basename(site[0])}:{site[1]}" if site else "an unknown line"


def quoted(names: Sequence[str], most: int = 4) -> str:
    """`model.hidden[0]`, `model.hidden[1]` and 3 more"""
    text = ", ".join(f"`{name}`" for name in names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text


def layer_names(parameters: Iterable[Parameter], most: int = 4) -> str:
    names = [layer_of(each) or each.name or f"a parameter of shape {list(each.shape)}" for each in parameters]
    return quoted(list(dict.fromkeys(names)), most)


def counted(parameters: Sequence[Parameter]) -> str:
    """4 parameters (1,088 values)"""
    values = sum(parameter.numel for parameter in parameters)
    return f"{len(parameters)} parameter{'s' * (len(parameters) != 1)} ({values:,} values)"
