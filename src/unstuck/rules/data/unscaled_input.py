"""unscaled-input: the model is given numbers far too large or far too small, or columns of very different size.

What it sees
    A column of the input with values beyond ±50, or a hundred times wider than the others, or far away from 0 for its
    width, or no value at all beyond a ten-thousandth; and that a layer which does not normalize is given it as it is.

Why it matters
    A sum of large numbers drives sigmoid and tanh to where they are flat, and ReLU units to where they never answer:
    the gradient is 0 from the first step. Where it is not, one column outweighs all others, and the learning rate that
    suits it does not suit them. Numbers next to nothing are lost beside the bias of the first layer, whose weights get
    a gradient as small as they are.

Evidence
    Range, mean and deviation of the column, over the samples read; which layer is given it; which units are flat or
    dead behind that layer, and what a constant prediction would reach.

Fix
    Standardize each column with the mean and deviation of the training set, or begin the model with a BatchNorm.

When it is wrong
    Token ids, masks and labels are left out, and so is a model that begins with a normalization or divides first: what
    its first layers are given is measured. A training that learns with such data gets this as information.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from unstuck.model import Case, Finding, Fix, Severity
from unstuck.recorder.records.data import GivenLayer, PartSeen, Scale
from unstuck.recorder.records.learning import Activation
from unstuck.rules.data.missing_values import coded
from unstuck.rules.data.seen import Data, blocked, called, seen
from unstuck.rules.rule import Rule
from unstuck.rules.training import end_mean, main_loss, number, share_of_constant, start_mean

LARGE = 50.0
"""Mean and twice the deviation together: a lone outlier is no matter of scale."""
GROSS = 1000.0
"""Where no unit is seen to be flat or dead, a training that does not learn is laid to numbers like these only."""
TINY = 1e-4
"""No value of any column beyond this: a layer cannot tell them from 0."""
UNEVEN = 100.0
OFF_CENTRE = 10.0
NORMALIZE = ("Norm", "Embedding")


@dataclass(frozen=True)
class Reason:
    """Why numbers of this scale are hard to learn from."""

    kind: Literal["tiny", "large", "uneven", "off-centre"]
    text: str


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        odd = [
            (part, part.scale, why)
            for part in data.features()
            if part.scale is not None and (why := reasons(part.scale, coded(part)))
        ]
        if odd and (not data.given or takers(data)):  # else its first layers are given other numbers
            yield _finding(data, *max(odd, key=lambda each: each[1].largest.size))


def reasons(scale: Scale, left_out: Collection[int] = ()) -> list[Reason]:
    """The first is the gravest."""
    found: list[Reason] = []
    largest, widest, offset = scale.largest, scale.widest, scale.offset
    extent = max(abs(largest.low), abs(largest.high))
    if 0 < largest.size <= TINY and extent <= TINY:
        return [Reason("tiny", f"no value is beyond {number(extent)}")]
    if largest.column not in left_out and largest.size > LARGE and extent > LARGE:
        between = f"{number(largest.low)} and {number(largest.high)}"
        found.append(Reason("large", f"column {largest.column} lies between {between}"))
    if widest is not None and widest.deviation > UNEVEN * widest.middle > 0 and widest.column not in left_out:
        times = f"{widest.deviation / widest.middle:,.0f} × that of the middle one"
        deviation = number(widest.deviation)
        found.append(Reason("uneven", f"column {widest.column} has a standard deviation of {deviation}, {times}"))
    if offset is not None and offset.times > OFF_CENTRE:
        mean = f"{number(offset.mean)}, {offset.times:,.0f} × its standard deviation"
        found.append(Reason("off-centre", f"column {offset.column} has a mean of {mean}"))
    return found


def takers(data: Data) -> list[tuple[GivenLayer, Scale, list[Reason]]]:
    """Layers that are given such numbers and do nothing about it."""
    return [
        (each, each.scale, why)
        for each in data.given
        if each.scale is not None and not any(word in each.kind for word in NORMALIZE) and (why := reasons(each.scale))
    ]


def _severity(data: Data) -> tuple[Severity, float]:
    taking = takers(data)
    if data.scanned or data.learned or data.broken or not taking:
        return "info", 0.7
    if data.constant and all(why[0].kind == "tiny" for _, _, why in taking):
        return "error", 0.85
    if blocked(data) is not None:
        return ("error", 0.9) if data.constant else ("warning", 0.8)
    gross = any(scale.largest.size > GROSS for _, scale, _ in taking)
    return ("warning", 0.7) if data.constant and gross else ("info", 0.7)


def _finding(data: Data, part: PartSeen, scale: Scale, why: list[Reason]) -> Finding:
    severity, confidence = _severity(data)
    low, high = number(scale.largest.low), number(scale.largest.high)
    extent = {
        "tiny": f"all values within {low} and {high}",
        "large": f"values of {low} to {high}",
        "uneven": "columns of very different size",
        "off-centre": "values far from 0",
    }[why[0].kind]
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        title=f"The input {called(part)} is not scaled: {extent}",
        evidence=tuple(_evidence(data, called(part), why)),
        where=data.where(),
        fix=Fix(_fix(data, part)),
        seen_by="flight",
        also=data.also(),
    )


def _evidence(data: Data, name: str, why: list[Reason]) -> Iterable[str]:
    yield f"{name}, over {data.read()}: {'; '.join(reason.text for reason in why)}"
    if taking := takers(data):
        layer, _, there = taking[0]
        yield f"`{layer.layer}` ({layer.kind}) is given it as it is: {there[0].text}"
    elif not data.given:
        yield "what the first layer makes of it was not seen"
    flat = blocked(data)
    if flat is not None and not data.learned:
        yield _stopped(flat)
    loss = main_loss(data.learning) if data.learning is not None else None
    if data.learning is not None and loss is not None:
        share = share_of_constant(data.learning, loss)
        if share is not None:
            yield (
                f"after {loss.count:,} steps the loss is {end_mean(loss):.4g}, {share:.0%} of what a constant "
                "prediction reaches"
            )
        elif data.learned:
            yield f"the training learns all the same: its loss came from {start_mean(loss):.4g} to {loss.last:.4g}"


def _stopped(flat: Activation) -> str:
    if flat.kind == "relu":
        return f"{flat.late_dead:,} of {flat.units:,} units behind `{flat.name}` give 0 for every sample"
    return f"the {flat.kind} behind `{flat.name}` is flat for {flat.late_saturated:.0%} of its values"


def _fix(data: Data, part: PartSeen) -> str:
    if part.role == "image":
        return "Scale the pixels where the samples are made (`x.float() / 255`), or subtract the mean and divide."
    before = "the loader is made" if data.has_loader else "the batches are cut"
    return (
        "Standardize each column once, with the mean and deviation of the training set: "
        f"`x = (x - x.mean(0)) / x.std(0)` before {before}."
    )


RULE = Rule(
    "unscaled-input",
    "data",
    decide,
    explains=frozenset(("saturated-units", "dead-units", "vanishing-gradient", "no-better-than-constant")),
    gathers=True,
)
