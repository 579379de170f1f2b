"""wrong-loss-for-target: the loss function does not fit the targets it is given.

What it sees
    Cross entropy with "probabilities" that do not sum to 1; `nll_loss` on something that is not a logarithm of
    probabilities; binary cross entropy with targets outside 0 to 1; cross entropy over one single class; class numbers
    as targets of a squared error; a cross entropy or squared error with a minus in front, which is made larger.

Why it matters
    The loss has a floor that no model can pass, or no floor at all, or is the same whatever the model says. The
    optimizer does what it is told; the number it minimises has little to do with the task.

Evidence
    What the targets are (range, sums of rows, distinct values) over the batches read, the floor of the loss computed
    from them, and the loss beside it.

Fix
    The loss function for these targets, or the targets that this loss function expects.

When it is wrong
    Weights multiplied into one-hot targets, distillation and label smoothing set no floor of this kind and are not
    reported. Whole numbers with an order (ratings, counts) are rightly fitted with a squared error: class numbers are
    a warning only where the script itself has them as integers, else information. The minus is not judged where
    several losses or optimizers are at work (GAN).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log

from unstuck.model import Case, Finding, Fix, Severity
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import loss_of, where
from unstuck.rules.rule import Rule

TIMES = 3
"""Graphs read that end so."""
OFF = 0.02
"""How far from 1 a row of probabilities may sum: smoothing and half precision stay within."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            if head.times < TIMES:
                continue
            found = _one_class(learning, head) or _not_probabilities(learning, head) or _not_logarithms(learning, head)
            found = found or _outside(learning, head) or _minus(learning, head) or _class_numbers(learning, head)
            if found is not None:
                yield found
                break


def _one_class(learning: Learning, head: LossHead) -> Finding | None:
    if head.op not in ("cross_entropy", "log_softmax") or head.dim is None or len(head.shape) < 2:
        return None
    if head.shape[head.dim] != 1:
        return None
    return _finding(
        learning,
        head,
        "Cross entropy is computed over one single class: it is 0 whatever the model says",
        f"the output has shape {head.shape}; the softmax of one number is always 1, its logarithm 0, and so is "
        "every gradient",
        "Take `binary_cross_entropy_with_logits` for one output, or give the model one output a class.",
    )


def _not_probabilities(learning: Learning, head: LossHead) -> Finding | None:
    rows, floor = head.target.rows, head.target.floor or 0.0
    if head.op != "log_softmax" or rows is None:
        return None
    if head.target.negative:
        return _finding(
            learning,
            head,
            "Cross entropy is given probabilities below 0: the loss has no lower end",
            f"the targets lie between {curves.number(head.target.min)} and {curves.number(head.target.max)}",
            "Take a loss for numbers (MSELoss), or give class numbers or probabilities from 0 to 1.",
        )
    if abs(rows.mean - 1) <= OFF or floor < 0.05 * max(1.0, rows.mean):
        return None
    low, high = curves.number(rows.min), curves.number(rows.max)
    sums = f"sum to {low}" if low == high else f"sum to between {low} and {high}"
    return _finding(
        learning,
        head,
        f"Cross entropy is given targets that are no probabilities: their rows {sums} instead of 1",
        f"targets of shape {head.target.shape} between {curves.number(head.target.min)} and "
        f"{curves.number(head.target.max)}, whose rows {sums}",
        "Divide each row by its sum if these are shares of classes; take `binary_cross_entropy_with_logits` if a "
        "sample can be of several classes, and MSELoss (with scaled targets) if these are plain numbers.",
        f"with such targets no prediction at all brings the loss below {curves.number(floor)}"
        + (_now(learning, head) if head.bare else ""),
    )


def _not_logarithms(learning: Learning, head: LossHead) -> Finding | None:
    rows = head.prediction.rows
    if head.op != "nll" or rows is None or head.after in ("log", "log_softmax"):
        return None
    if rows.min >= 1 - OFF and rows.max <= 1 + OFF:
        return None
    given = "a softmax" if head.after == "softmax" else "a layer, as it is,"
    end = "can then not go below −1, and its gradient does not grow where the model is wrong"
    return _finding(
        learning,
        head,
        "`nll_loss` is given something else than logarithms of probabilities: it only makes one output large",
        f"it was computed on the output of {given} with values from {curves.number(head.prediction.min)} to "
        f"{curves.number(head.prediction.max)}; for logarithms of probabilities their exponentials would sum to 1, "
        f"and they sum to {curves.number(rows.min)} and more",
        "Take CrossEntropyLoss on the output of the last layer, or put a log_softmax in front of this loss.",
        f"the loss {end if head.after == 'softmax' else 'has no lower end'}{_now(learning, head)}",
    )


def _now(learning: Learning, head: LossHead) -> str:
    loss = loss_of(learning, head)
    if loss is None or not loss.points:
        return ""
    return f"; it is {curves.number(curves.ended(loss))} after {loss.count:,} steps"


def _outside(learning: Learning, head: LossHead) -> Finding | None:
    low, high = head.target.min, head.target.max
    if head.op not in ("bce_logits", "bce") or head.weighted or low is None or high is None:
        return None
    if low >= -1e-3 and high <= 1.001:
        return None
    values = head.target.values
    few = f" ({', '.join(curves.number(value) for value in values)})" if values and len(values) <= 6 else ""
    return _finding(
        learning,
        head,
        f"Binary cross entropy is given targets from {curves.number(low)} to {curves.number(high)}: it needs 0 to 1",
        f"targets of shape {head.target.shape} with values from {curves.number(low)} to {curves.number(high)}"
        f"{few}; outside 0 to 1 the loss has no lower end, and grows outputs without limit",
        "Bring the targets to 0 and 1 (a mask of 0 and 255: divide by 255; −1 and 1: (y + 1) / 2).",
    )


def _minus(learning: Learning, head: LossHead) -> Finding | None:
    loss = loss_of(learning, head)
    if loss is None or not _never_negative(head) or not head.signed or curves.adversarial(learning):
        return None
    if head.weighted or any(optimizer.settings.get("maximize") for optimizer in learning.optimizers):
        return None
    values = [value for _, value in loss.points]
    if len(values) < 20 or max(values) >= 0:
        return None
    return _finding(
        learning,
        head,
        "The loss has a minus in front: the optimizer makes the error larger",
        f"{head.op.replace('_', ' ')} is never negative, and the loss that backward is called on went from "
        f"{curves.number(curves.began(loss))} to {curves.number(curves.ended(loss))} in {loss.count:,} steps",
        "Take the minus away.",
    )


def _never_negative(head: LossHead) -> bool:
    """This function with these targets."""
    low, high = head.target.min, head.target.max
    if head.op == "log_softmax":
        return head.target.rows is not None and not head.target.negative
    if head.op in ("bce", "bce_logits"):
        return low is not None and high is not None and 0 <= low <= high <= 1
    return head.op == "cross_entropy" or head.op in curves.MEASURES


def _class_numbers(learning: Learning, head: LossHead) -> Finding | None:
    """Squared error against 0, 1, 2 …: only where it does not learn that well."""
    values, ids = head.target.values or [], head.target.ids
    loss, best, count = loss_of(learning, head), curves.constant(head), len(values)
    if loss is None or best is None or len(loss.points) < 20 or not _numbered(head, values):
        return None
    if curves.ended(loss) < (0.03 if ids else 0.15) * best:
        return None
    named = "the target" if ids == "the target" else f"`{ids}`"
    severity: Severity = "warning" if ids else "info"
    held = f"; the script has them as integers ({named})" if ids else ""
    return _finding(
        learning,
        head,
        f"The numbers of {count} classes are fitted with a {_named(head)} error, as if class {count - 1} were more "
        "than class 0",
        f"every target is one of {', '.join(f'{value:.0f}' for value in values[:6])}{' …' if count > 6 else ''}{held}",
        f"If these are classes: {count} outputs and CrossEntropyLoss. For amounts, such as ratings, this is right.",
        f"the loss is {curves.number(curves.ended(loss))} after {loss.count:,} steps, where always giving their mean "
        f"gives {curves.number(best)}; chance among {count} classes in cross entropy would be {log(count):.3g}",
        severity=severity,
        confidence=0.75 if ids else 0.4,
    )


def _numbered(head: LossHead, values: list[float]) -> bool:
    """Three classes or more, numbered from 0, with enough targets that no value in between would be missing."""
    count = len(values)
    if head.op not in curves.MEASURES or head.broadcast or count < 3 or head.target.count < 20 * count:
        return False
    return values == [float(each) for each in range(count)]


def _named(head: LossHead) -> str:
    return "squared" if head.op in ("mse", "squared") else "absolute"


def _finding(
    learning: Learning,
    head: LossHead,
    title: str,
    evidence: str,
    fix: str,
    more: str = "",
    *,
    severity: Severity = "error",
    confidence: float = 0.95,
) -> Finding:
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        title=title,
        evidence=(evidence, more) if more else (evidence,),
        where=where(learning, head.site),
        fix=Fix(fix),
        seen_by="flight",
    )


RULE = Rule(
    "wrong-loss-for-target",
    "learning",
    decide,
    explains=frozenset(
        (
            "target-scale",
            "predicts-one-class",
            "no-better-than-constant",
            "still-improving",
            "learning-rate-too-high",
            "loss-oscillates",
        )
    ),
    gathers=True,
)
