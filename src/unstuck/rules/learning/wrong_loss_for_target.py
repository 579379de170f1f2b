"""wrong-loss-for-target: the loss function does not fit the targets it is given.

What it sees
    Cross entropy with "probabilities" that do not sum to 1; `nll_loss` on something that is not a logarithm of
    probabilities; binary cross entropy with targets outside 0 to 1; cross entropy over one single class; class numbers
    as targets of a squared error; a cross entropy or squared error with a minus in front, which is made larger.

Why training stops
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
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import Head, Learning, learnings
from unstuck.rules.rule import Rule

TIMES = 3
OFF = 0.02
"""How far from 1 a row of probabilities may sum: smoothing and half precision stay within."""
NEVER_NEGATIVE = (
    "cross_entropy",
    "log_softmax",
    "mse",
    "smooth_l1",
    "huber",
    "squared",
    "absolute",
    "bce",
    "bce_logits",
)


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        for head in learning.heads:
            if head.times < TIMES:
                continue
            found = _one_class(learning, head) or _not_probabilities(learning, head) or _not_logarithms(learning, head)
            found = found or _outside(learning, head) or _minus(learning, head) or _class_numbers(learning, head)
            if found is not None:
                yield found
                break


def _one_class(learning: Learning, head: Head) -> Finding | None:
    if head.op not in ("cross_entropy", "log_softmax") or head.dim is None or len(head.shape) < 2:
        return None
    if head.shape[head.dim] != 1:
        return None
    return _finding(
        learning,
        head,
        "Cross entropy is computed over one single class: it is 0 whatever the model says",
        f"the output has shape {list(head.shape)}; the softmax of one number is always 1, its logarithm 0, and so is "
        "every gradient",
        "Take `binary_cross_entropy_with_logits` for one output, or give the model one output a class.",
    )


def _not_probabilities(learning: Learning, head: Head) -> Finding | None:
    rows = head.target.get("rows")
    if head.op != "log_softmax" or not rows:
        return None
    if head.target.get("negative"):
        return _finding(
            learning,
            head,
            "Cross entropy is given probabilities below 0: the loss has no lower end",
            f"the targets lie between {curves.number(head.target['min'])} and {curves.number(head.target['max'])}",
            "Take a loss for numbers (MSELoss), or give class numbers or probabilities from 0 to 1.",
        )
    floor = head.target.get("floor", 0.0)
    if abs(rows["mean"] - 1) <= OFF or floor < 0.05 * max(1.0, rows["mean"]):
        return None
    low, high = curves.number(rows["min"]), curves.number(rows["max"])
    sums = f"sum to {low}" if low == high else f"sum to between {low} and {high}"
    loss = learning.loss_of(head)
    known = head.bare and loss is not None and loss.points
    now = f"; it is {curves.number(curves.ended(loss))} after {loss.count:,} steps" if known and loss else ""
    return _finding(
        learning,
        head,
        f"Cross entropy is given targets that are no probabilities: their rows {sums} instead of 1",
        f"targets of shape {head.target.get('shape')} between {curves.number(head.target['min'])} and "
        f"{curves.number(head.target['max'])}, whose rows {sums}",
        "Divide each row by its sum if these are shares of classes; take `binary_cross_entropy_with_logits` if a "
        "sample can be of several classes, and MSELoss (with scaled targets) if these are plain numbers.",
        f"with such targets no prediction at all brings the loss below {curves.number(floor)}{now}",
    )


def _not_logarithms(learning: Learning, head: Head) -> Finding | None:
    rows = head.prediction.get("rows")
    if head.op != "nll" or not rows or head.after in ("log", "log_softmax"):
        return None
    if rows["min"] >= 0.98 and rows["max"] <= 1.02:
        return None
    given = "a softmax" if head.after == "softmax" else "a layer, as it is,"
    loss = learning.loss_of(head)
    now = f"; it is {curves.number(curves.ended(loss))} after {loss.count:,} steps" if loss and loss.points else ""
    end = "can then not go below −1, and its gradient does not grow where the model is wrong"
    return _finding(
        learning,
        head,
        "`nll_loss` is given something else than logarithms of probabilities: it only makes one output large",
        f"it was computed on the output of {given} with values from {curves.number(head.prediction['min'])} to "
        f"{curves.number(head.prediction['max'])}; for logarithms of probabilities their exponentials would sum to 1, "
        f"and they sum to {curves.number(rows['min'])} and more",
        "Take CrossEntropyLoss on the output of the last layer, or put a log_softmax in front of this loss.",
        f"the loss {end if head.after == 'softmax' else 'has no lower end'}{now}",
    )


def _outside(learning: Learning, head: Head) -> Finding | None:
    if head.op not in ("bce_logits", "bce") or head.weighted or "min" not in head.target:
        return None
    low, high = head.target["min"], head.target["max"]
    if low >= -1e-3 and high <= 1.001:
        return None
    values = head.target.get("values")
    few = f" ({', '.join(curves.number(value) for value in values)})" if values and len(values) <= 6 else ""
    return _finding(
        learning,
        head,
        f"Binary cross entropy is given targets from {curves.number(low)} to {curves.number(high)}: it needs 0 to 1",
        f"targets of shape {head.target.get('shape')} with values from {curves.number(low)} to {curves.number(high)}"
        f"{few}; outside 0 to 1 the loss has no lower end, and grows outputs without limit",
        "Bring the targets to 0 and 1 (a mask of 0 and 255: divide by 255; −1 and 1: (y + 1) / 2).",
    )


def _minus(learning: Learning, head: Head) -> Finding | None:
    loss = learning.loss_of(head)
    if loss is None or head.op not in NEVER_NEGATIVE or not head.signed or curves.adversarial(learning):
        return None
    if head.weighted or any(optimizer.settings.get("maximize") for optimizer in learning.optimizers):
        return None
    if head.op == "log_softmax" and not (head.target.get("rows") and not head.target.get("negative")):
        return None
    if head.op in ("bce", "bce_logits") and not 0 <= head.target.get("min", -1) <= head.target.get("max", 2) <= 1:
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


def _class_numbers(learning: Learning, head: Head) -> Finding | None:
    """Squared error against 0, 1, 2 …: only where it does not learn that well."""
    values = head.target.get("values")
    if head.op not in ("mse", "squared", "absolute", "smooth_l1", "huber") or not values or head.broadcast:
        return None
    count = len(values)
    if count < 3 or values != [float(each) for each in range(count)] or head.target["count"] < 20 * count:
        return None
    loss = learning.loss_of(head)
    best = curves.constant(head)
    ids = head.target.get("ids")
    if loss is None or len(loss.points) < 20 or best is None or curves.ended(loss) < (0.03 if ids else 0.15) * best:
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


def _named(head: Head) -> str:
    return "squared" if head.op in ("mse", "squared") else "absolute"


def _finding(
    learning: Learning,
    head: Head,
    title: str,
    evidence: str,
    fix: str,
    more: str = "",
    *,
    severity: Severity = "error",
    confidence: float = 0.95,
) -> Finding:
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity=severity,
        confidence=confidence,
        title=title,
        evidence=(evidence, more) if more else (evidence,),
        where=learning.where(head.site),
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
