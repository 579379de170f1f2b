"""wrong-loss-for-target: the loss function does not fit its targets.

What it sees
    Cross entropy with "probabilities" that do not sum to 1; `nll_loss` on something other than log-probabilities;
    binary cross entropy with targets outside 0 to 1; cross entropy over a single class; class indices as targets of a
    squared error; a cross entropy or squared error with a minus sign, which training makes larger.

Why it matters
    The loss has a floor that no model can pass, or no floor at all, or is the same whatever the model predicts. The
    optimizer minimizes a number that has little to do with the task.

Evidence
    What the targets are (range, sums of rows, distinct values) over the batches read, the floor of the loss computed
    from them, and the loss compared with it.

Fix
    The loss function for these targets, or the targets that this loss function expects.

When it is wrong
    Weights multiplied into one-hot targets, distillation and label smoothing give no floor of this kind and are not
    reported. Whole numbers with an order (ratings, counts) are fine with a squared error: class indices are a warning
    only where the script itself has them as integers, else information. The minus sign is not judged where several
    losses or optimizers are at work (GAN).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log

from unstuck.model import Case, Finding, Severity
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.rule import Rule
from unstuck.rules.training import (
    REGRESSION_OPS,
    SQUARED_OPS,
    constant_loss,
    course,
    end_mean,
    first_by_loss_function,
    loss_of,
    now,
    number,
    several_losses,
    where,
)

MAX_OFF_ONE = 0.02  # of a row of probabilities: smoothing and half precision stay within
MIN_FLOOR = 0.05  # that targets which do not sum to 1 give the loss
MIN_POINTS = 20  # of the loss curve
MIN_PER_CLASS = 20  # targets: then no value in between is missing by chance
MAX_SHARE_KNOWN, MAX_SHARE_GUESSED = 0.03, 0.15  # of the constant loss: below it regression on class indices works


def decide(case: Case) -> Iterable[Finding]:
    return first_by_loss_function(case, _judge)


def _judge(learning: Learning, head: LossHead) -> Finding | None:
    checks = (_single_class, _not_probabilities, _not_log_probabilities, _out_of_range, _minus_sign, _class_indices)
    return next((finding for check in checks if (finding := check(learning, head)) is not None), None)


def _single_class(learning: Learning, head: LossHead) -> Finding | None:
    if head.op not in ("cross_entropy", "log_softmax") or head.dim is None or len(head.shape) < 2:
        return None
    if head.shape[head.dim] != 1:
        return None
    return _finding(
        learning,
        head,
        "Cross entropy over a single class: it is 0 whatever the model predicts",
        f"the output has shape {head.shape}; the softmax of one value is always 1, its log is 0, and so is every "
        "gradient",
        fix="Use `binary_cross_entropy_with_logits` for one output, or give the model one output per class.",
    )


def _not_probabilities(learning: Learning, head: LossHead) -> Finding | None:
    target, rows, floor = head.target, head.target.rows, head.target.floor or 0.0
    if head.op != "log_softmax" or rows is None:
        return None
    span = f"between {number(target.min)} and {number(target.max)}"
    if target.negative:
        return _finding(
            learning,
            head,
            "Cross entropy gets probabilities below 0: the loss has no lower bound",
            f"the targets are {span}",
            fix="Use a regression loss (MSELoss), or pass class indices or probabilities from 0 to 1.",
        )
    if abs(rows.mean - 1) <= MAX_OFF_ONE or floor < MIN_FLOOR * max(1.0, rows.mean):
        return None
    low, high = number(rows.min), number(rows.max)
    sums = f"sum to {low}" if low == high else f"sum to between {low} and {high}"
    return _finding(
        learning,
        head,
        f"Cross entropy gets targets that are not probabilities: their rows {sums} instead of 1",
        f"targets of shape {target.shape} {span}, whose rows {sums}",
        f"with such targets no prediction brings the loss below {number(floor)}"
        + (now(loss_of(learning, head)) if head.bare else ""),
        fix="Divide each row by its sum if these are shares of classes; use `binary_cross_entropy_with_logits` if a "
        "sample can have several classes, and MSELoss (with scaled targets) if these are quantities.",
    )


def _not_log_probabilities(learning: Learning, head: LossHead) -> Finding | None:
    rows, predicted = head.prediction.rows, head.prediction
    if head.op != "nll" or rows is None or head.after in ("log", "log_softmax"):
        return None
    if rows.min >= 1 - MAX_OFF_ONE and rows.max <= 1 + MAX_OFF_ONE:
        return None
    probabilities = head.after == "softmax"
    what = "probabilities" if probabilities else "raw logits"
    bound = "cannot go below −1, and its gradient does not grow where the model is wrong"
    return _finding(
        learning,
        head,
        f"`nll_loss` expects log-probabilities but gets {what}: it only makes one output large",
        f"its input, the output of {'a softmax' if probabilities else 'a layer'}, ranges from {number(predicted.min)} "
        f"to {number(predicted.max)}; exponentials of log-probabilities sum to 1, these sum to {number(rows.min)} and "
        "more",
        f"the loss {bound if probabilities else 'has no lower bound'}{now(loss_of(learning, head))}",
        fix="Use CrossEntropyLoss on the output of the last layer, or put a log_softmax before this loss.",
    )


def _out_of_range(learning: Learning, head: LossHead) -> Finding | None:
    low, high, values = head.target.min, head.target.max, head.target.values
    if head.op not in ("bce_logits", "bce") or head.weighted or low is None or high is None:
        return None
    if low >= -1e-3 and high <= 1.001:
        return None
    few = f" ({', '.join(map(number, values))})" if values and len(values) <= 6 else ""
    return _finding(
        learning,
        head,
        f"Binary cross entropy gets targets from {number(low)} to {number(high)}, but needs 0 to 1",
        f"targets of shape {head.target.shape} with values from {number(low)} to {number(high)}{few}; outside 0 to 1 "
        "the loss has no lower bound, and outputs grow without limit",
        fix="Scale the targets to 0 and 1 (a mask of 0 and 255: divide by 255; −1 and 1: (y + 1) / 2).",
    )


def _minus_sign(learning: Learning, head: LossHead) -> Finding | None:
    loss = loss_of(learning, head)
    if loss is None or not _is_never_negative(head) or not head.signed or several_losses(learning):
        return None
    if head.weighted or any(optimizer.settings.get("maximize") for optimizer in learning.optimizers):
        return None
    if len(loss.points) < MIN_POINTS or max(value for _, value in loss.points) >= 0:
        return None
    return _finding(
        learning,
        head,
        "The loss has a minus sign: the optimizer makes the error larger",
        f"{head.op.replace('_', ' ')} is never negative, but {course(loss)}",
        fix="Remove the minus sign.",
    )


def _is_never_negative(head: LossHead) -> bool:
    """This function with these targets."""
    low, high = head.target.min, head.target.max
    if head.op == "log_softmax":
        return head.target.rows is not None and not head.target.negative
    if head.op in ("bce", "bce_logits"):
        return low is not None and high is not None and 0 <= low <= high <= 1
    return head.op == "cross_entropy" or head.op in REGRESSION_OPS


def _class_indices(learning: Learning, head: LossHead) -> Finding | None:
    """Regression on 0, 1, 2 …: only where that does not work well."""
    values, integers = head.target.values or [], head.target.ids
    loss, best, count = loss_of(learning, head), constant_loss(head), len(values)
    if loss is None or best is None or len(loss.points) < MIN_POINTS or not _are_indices(head, values):
        return None
    if end_mean(loss) < (MAX_SHARE_KNOWN if integers else MAX_SHARE_GUESSED) * best:
        return None
    name = "the target" if integers == "the target" else f"`{integers}`"
    shown = ", ".join(f"{value:.0f}" for value in values[:6]) + (" …" if count > 6 else "")
    error = "squared error" if head.op in SQUARED_OPS else "absolute error"
    return _finding(
        learning,
        head,
        f"Class indices 0–{count - 1} are trained with a {error} as if they were quantities",
        f"every target is one of {shown}" + (f"; the script has them as integers ({name})" if integers else ""),
        f"the loss is {number(end_mean(loss))} after {loss.count:,} steps, and always predicting their mean gives "
        f"{number(best)}; in cross entropy, chance among {count} classes would be {log(count):.3g}",
        fix=f"If these are classes: {count} outputs and CrossEntropyLoss. Quantities, such as ratings, are fine.",
        severity="warning" if integers else "info",
        confidence=0.75 if integers else 0.4,
    )


def _are_indices(head: LossHead, values: list[float]) -> bool:
    """Three classes or more, numbered from 0."""
    count = len(values)
    if head.op not in REGRESSION_OPS or head.broadcast or count < 3 or head.target.count < MIN_PER_CLASS * count:
        return False
    return values == [float(index) for index in range(count)]


def _finding(
    learning: Learning,
    head: LossHead,
    title: str,
    *evidence: str,
    fix: str,
    severity: Severity = "error",
    confidence: float = 0.95,
) -> Finding:
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        title=title,
        evidence=evidence,
        where=where(learning, head.site),
        fix=fix,
    )


RULE = Rule(
    "wrong-loss-for-target",
    "learning",
    decide,
    explains=frozenset(("target-scale", "predicts-one-class", "learning-rate-too-high", "loss-oscillates")),
    gathers=True,
)
