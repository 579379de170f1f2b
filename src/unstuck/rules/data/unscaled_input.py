"""unscaled-input: the model gets numbers far too large or far too small, or columns of very different size.

What it sees
    A column of the input with values beyond ±50, or a hundred times wider than the others, or far away from 0 for its
    width, or no value at all beyond a ten-thousandth; and a layer that does not normalize gets it as it is.

Why it matters
    A sum of large numbers drives sigmoid and tanh to where they are flat, and ReLU units to where they are dead: the
    gradient is 0 from the first step. If it is not, one column outweighs all others, and the learning rate that suits
    it does not suit them. Tiny numbers vanish next to the bias of the first layer, whose weights get a gradient as
    small as they are.

Evidence
    Range, mean and deviation of the column, over the samples read; which layer gets it; which units after that layer
    are flat or dead, and what a constant prediction would reach.

Fix
    Standardize each column with the mean and deviation of the training set, or begin the model with a BatchNorm.

When it is wrong
    Token ids, masks and labels are left out, and so is a model that begins with a normalization or divides first: what
    its first layers get is measured. For a training that learns with such data this is information.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from unstuck.model import Case, Finding, Severity
from unstuck.recorder.records.data import GivenLayer, PartSeen, Scale
from unstuck.rules.data.contents import Data, code_in, number, part_name, read_data
from unstuck.rules.rule import Rule
from unstuck.rules.training import end_mean, is_saturated, largest_first_update, share_of_constant, start_mean

LARGE = 50.0  # mean and twice the deviation together: a lone outlier is no matter of scale
GROSS = 1000.0  # without flat or dead units, only numbers like these are blamed for a training that does not learn
TINY = 1e-4  # no value of any column beyond this: a layer cannot tell them from 0
MAX_WIDTH_RATIO = 100.0  # of the widest column compared with the middle one
MAX_OFFSET = 10.0  # of a mean, in units of its deviation
NORMALIZING = ("Norm", "Embedding")  # layers whose class is named so
MIN_BATCHES = 12  # before units count as dead
DEAD_SHARE = 0.9  # of a layer's units


@dataclass(frozen=True)
class Reason:
    """Why numbers of this scale are hard to learn from."""

    kind: Literal["tiny", "large", "uneven", "off-centre"]
    text: str


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        odd = [
            (part, part.scale, reasons)
            for part in data.features()
            if part.scale is not None and (reasons := _reasons(part.scale, _coded(part)))
        ]
        if odd and (not data.given or _getting(data)):  # else its first layers get other numbers
            yield _finding(data, *max(odd, key=lambda each: each[1].largest.size))


def _coded(part: PartSeen) -> set[int]:
    """Columns with a code for "unknown": what they are like otherwise is not known."""
    return {column.column for column in part.columns if code_in(part, column) is not None}


def _reasons(scale: Scale, left_out: Collection[int] = ()) -> list[Reason]:
    """The most serious first."""
    reasons: list[Reason] = []
    largest, widest, offset = scale.largest, scale.widest, scale.offset
    extent = max(abs(largest.low), abs(largest.high))
    if 0 < largest.size <= TINY and extent <= TINY:
        return [Reason("tiny", f"no value is beyond {number(extent)}")]
    if largest.column not in left_out and largest.size > LARGE and extent > LARGE:
        between = f"{number(largest.low)} and {number(largest.high)}"
        reasons.append(Reason("large", f"column {largest.column} lies between {between}"))
    if widest is not None and widest.deviation > MAX_WIDTH_RATIO * widest.middle > 0 and widest.column not in left_out:
        deviation = f"{number(widest.deviation)}, {widest.deviation / widest.middle:,.0f} × that of the middle one"
        reasons.append(Reason("uneven", f"column {widest.column} has a standard deviation of {deviation}"))
    if offset is not None and offset.times > MAX_OFFSET:
        mean = f"{number(offset.mean)}, {offset.times:,.0f} × its standard deviation"
        reasons.append(Reason("off-centre", f"column {offset.column} has a mean of {mean}"))
    return reasons


def _getting(data: Data) -> list[tuple[GivenLayer, Scale, list[Reason]]]:
    """Layers that get such numbers and do not normalize them."""
    return [
        (layer, layer.scale, reasons)
        for layer in data.given
        if layer.scale is not None
        and not any(word in layer.kind for word in NORMALIZING)
        and (reasons := _reasons(layer.scale))
    ]


def _blocked(data: Data) -> str:
    """An activation whose units are flat or dead, after a layer that gets the data as it is."""
    first = {layer.layer for layer in data.given}
    for units in data.learning.activations if data.learning is not None else ():
        dead = units.late_batches >= MIN_BATCHES and units.late_dead > DEAD_SHARE * units.units > 0
        if units.name not in first or not (dead or is_saturated(units)):
            continue
        if units.kind == "relu":
            return f"{units.late_dead:,} of {units.units:,} units after `{units.name}` give 0 for every sample"
        return f"the {units.kind} after `{units.name}` is flat for {units.late_saturated:.0%} of its values"
    return ""


def _severity(data: Data) -> tuple[Severity, float]:
    getting = _getting(data)
    gross = any(scale.largest.size > GROSS for _, scale, _ in getting)
    nan = data.learning is not None and any(loss.nonfinite for loss in data.learning.losses)
    ruined = data.learning is not None and largest_first_update(data.learning) > 1
    if data.scanned or (data.learned and not data.useless) or not getting:
        return "info", 0.7
    if nan:  # by the gradient of its first layer, which is as large as these numbers; else by something else
        return ("error", 0.85) if gross and ruined else ("info", 0.7)
    if data.stuck and all(reasons[0].kind == "tiny" for _, _, reasons in getting):
        return "error", 0.85
    if _blocked(data):
        return ("error", 0.9) if data.stuck or data.useless else ("warning", 0.8)
    if gross and data.useless:
        return "error", 0.85
    return ("warning", 0.7) if data.stuck and gross else ("info", 0.7)


def _finding(data: Data, part: PartSeen, scale: Scale, reasons: list[Reason]) -> Finding:
    severity, confidence = _severity(data)
    low, high = number(scale.largest.low), number(scale.largest.high)
    extent = {
        "tiny": f"all values between {low} and {high}",
        "large": f"values of {low} to {high}",
        "uneven": "columns of very different size",
        "off-centre": "values far from 0",
    }[reasons[0].kind]
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        title=f"The input {part_name(part)} is not scaled: {extent}",
        evidence=_evidence(data, part_name(part), reasons),
        where=data.where(),
        fix=_fix(data, part),
        also=data.also(),
    )


def _evidence(data: Data, name: str, reasons: list[Reason]) -> Iterable[str]:
    yield f"{name}, over {data.extent()}: {'; '.join(reason.text for reason in reasons)}"
    if getting := _getting(data):
        layer, _, there = getting[0]
        yield f"`{layer.layer}` ({layer.kind}) gets it as it is: {there[0].text}"
    elif not data.given:
        yield "what the first layer does with it is not known"
    if not data.learned or data.useless:
        yield _blocked(data)
    loss = data.loss
    if data.learning is not None and loss is not None:
        share = share_of_constant(data.learning, loss)
        if data.useless:
            yield data.harm()
        elif share is not None:
            yield (
                f"after {loss.count:,} steps the loss is {end_mean(loss):.4g}, {share:.0%} of what a constant "
                "prediction reaches"
            )
        elif data.learned:
            yield f"the training learns all the same: its loss fell from {start_mean(loss):.4g} to {loss.last:.4g}"


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
    explains=frozenset(
        {
            "saturated-units",
            "dead-units",
            "vanishing-gradient",
            "exploding-gradient",
            "nonfinite-born",
            "learning-rate-too-high",
            "loss-oscillates",
            "loss-spike",
            "predicts-one-class",
            "no-better-than-constant",
        }
    ),
    gathers=True,
)
