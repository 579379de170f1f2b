"""output-range-excludes-targets: the last activation cannot output what the targets need.

What it sees
    The loss of a regression is computed right after a ReLU, sigmoid, tanh or softmax, or on the hidden state of a GRU
    or LSTM, and a good part of the targets is outside its range. Or a sigmoid, tanh or softmax is multiplied with
    numbers that do not learn (a mask with its data), and most targets lie beyond what each of them allows. Or logits
    go through a ReLU, so that no probability is below one half.

Why it matters
    The model gets as close as the activation allows and stays there: at the edge of its range, where a sigmoid or tanh
    is flat and a ReLU passes no gradient at all.

Evidence
    The activation and its range, the range of the targets, the share of them outside, and the floor of the loss.

Fix
    No activation after the last layer, a linear layer after a recurrent one, or targets scaled into its range.

When it is wrong
    A few targets a little outside (noise around 0 after a ReLU) are not reported: less than 5 % of them, or a floor
    that is small compared with their variance; for a product, less than three quarters of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import Learning, LossHead, OutOfReach
from unstuck.rules.rule import Rule
from unstuck.rules.training import REGRESSION_OPS, SQUARED_OPS, first_by_loss_function, loss_of, now, number, where

RANGES = {"relu": "0 and above", "sigmoid": "between 0 and 1", "softmax": "between 0 and 1", "tanh": "between −1 and 1"}
STATES = {
    "gru": "the hidden state of a GRU",
    "lstm": "the hidden state of an LSTM",
    "gated_tanh": "a tanh times a sigmoid",
}
RNN = " (where that is an RNN, put a linear layer after it)"
MAX_STATE = 1.001  # of a hidden state; with a first state beyond that a GRU may leave its range
MIN_SHARE = 0.05  # of the targets outside, and of their variance that the floor is
MIN_BEYOND = 0.75  # of the targets of a product: a mask on magnitudes falls short of some, where sounds cancel out
MIN_TARGETS = 32  # of fewer a share of 5 % means nothing
MIN_FLOOR = 1e-4


def decide(case: Case) -> Iterable[Finding]:
    return first_by_loss_function(case, _judge)


def _judge(learning: Learning, head: LossHead) -> Finding | None:
    if head.broadcast:
        return None
    if head.op == "bce_logits" and head.after == "relu":
        return _relu_logits(learning, head)
    if head.op in REGRESSION_OPS and _softmax_of_one(head):
        return _always_one(learning, head)
    if head.op in REGRESSION_OPS and head.scaled and head.bare:
        return _out_of_scale(learning, head)
    if head.op in REGRESSION_OPS and (head.after in RANGES or _is_state(head)):
        return _out_of_range(learning, head)
    return None


def _is_state(head: LossHead) -> bool:
    low, high = head.prediction.min, head.prediction.max
    return head.after in STATES and low is not None and high is not None and -MAX_STATE <= low <= high <= MAX_STATE


def _relu_logits(learning: Learning, head: LossHead) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.9,
        title="The logits go through a ReLU: no probability can be below 0.5, though targets are 0",
        evidence=(
            f"binary cross entropy with logits gets the output of a ReLU, in {head.times:,} sampled steps; a logit of "
            "0 or more is a probability of 0.5 or more",
        ),
        where=where(learning, head.site),
        fix="Remove the ReLU after the last layer.",
    )


def _softmax_of_one(head: LossHead) -> bool:
    shape, dim = head.after_shape, head.after_dim
    return head.after == "softmax" and dim is not None and len(shape) > 1 and shape[dim] == 1


def _always_one(learning: Learning, head: LossHead) -> Finding:
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title="The model ends in a softmax over a single value: its output is always 1",
        evidence=(f"softmax with dim={head.after_dim} on a tensor of shape {head.after_shape}; its gradient is 0",),
        where=where(learning, head.site),
        fix="Remove the softmax, or use a sigmoid for one probability.",
    )


def _out_of_range(learning: Learning, head: LossHead) -> Finding | None:
    target, activation = head.target, head.after
    of = "tanh" if activation in STATES else "sigmoid" if activation == "softmax" else activation
    outside = target.beyond.get(of) or OutOfReach()
    if target.count < MIN_TARGETS or target.sd is None or outside.share < MIN_SHARE:
        return None
    if outside.floor < MIN_SHARE * target.sd**2 or outside.floor <= MIN_FLOOR:
        return None
    loss, floor = loss_of(learning, head), ""
    if head.op in SQUARED_OPS and head.bare and loss is not None and loss.points:
        floor = f"no output in that range brings the loss below about {number(outside.floor)}{now(loss)}"
    name, span = STATES.get(activation, f"a {activation}"), RANGES["tanh" if activation in STATES else activation]
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"The model ends in {name} (output {span}), but {outside.share:.0%} of the targets are outside that "
        "range",
        evidence=(
            f"the loss gets {name if activation in STATES else f'the output of {name}'}, which is {span}; the targets "
            f"range from {number(target.min)} to {number(target.max)}, {outside.share:.0%} of them outside",
            f"the outputs range from {number(head.prediction.min)} to {number(head.prediction.max)}"
            if head.prediction.min is not None
            else "",
            floor,
        ),
        where=where(learning, head.site),
        fix="Put a linear layer without an activation after it, or scale the targets into its range."
        if activation in STATES
        else f"Remove the {activation} after the last layer{RNN if activation == 'tanh' else ''}, or scale the targets "
        "into its range.",
    )


def _out_of_scale(learning: Learning, head: LossHead) -> Finding | None:
    target, outside = head.target, head.target.beyond.get("scaled") or OutOfReach()
    if target.count < MIN_TARGETS or target.sd is None or outside.share < MIN_BEYOND:
        return None
    if outside.floor < MIN_SHARE * target.sd**2 or outside.floor <= MIN_FLOOR:
        return None
    loss, floor = loss_of(learning, head), ""
    if head.op in SQUARED_OPS and loss is not None and loss.points:
        floor = f"no output of the {head.scaled} brings the loss below about {number(outside.floor)}{now(loss)}"
    between = "minus and plus that number" if head.scaled == "tanh" else "0 and that number"
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=f"The output is a {head.scaled} times given numbers, and {outside.share:.0%} of the targets are beyond "
        "what that can be",
        evidence=(
            f"the loss gets a {head.scaled} ({RANGES[head.scaled]}) times a number that does not learn, so each output "
            f"lies between {between}; {outside.share:.0%} of {target.count:,} targets do not",
            f"the outputs range from {number(head.prediction.min)} to {number(head.prediction.max)}, the targets from "
            f"{number(target.min)} to {number(target.max)}",
            floor,
        ),
        where=where(learning, head.site),
        fix=f"Multiply where the targets are within reach (a mask belongs on magnitudes, not on their logarithm), or "
        f"let the model give its output without the {head.scaled}.",
    )


RULE = Rule(
    "output-range-excludes-targets",
    "learning",
    decide,
    explains=frozenset(("target-scale", "predicts-one-class", "wrong-loss-for-target", "loss-oscillates")),
    gathers=True,
)
