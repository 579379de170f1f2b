"""unscaled-input: the model is given numbers far too large or far too small, or columns of very different size.

What it sees
    A column of the input with values beyond ±50, or a hundred times wider than the others, or far away from 0 for its
    width, or no value at all beyond a ten-thousandth; and that a layer which does not normalize is given it as it is.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix, Severity
from unstuck.rules.data.missing_values import coded
from unstuck.rules.data.seen import Data, blocked, called, number, seen
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import main_loss
from unstuck.rules.rule import Rule

LARGE = 50.0
"""Mean and twice the deviation together: a lone outlier is no matter of scale."""
GROSS = 1000.0
"""Where no unit is seen to be flat or dead, a training that does not learn is laid to numbers like these only."""
TINY = 1e-4
"""No value of any column beyond this: a layer cannot tell them from 0."""
UNEVEN = 100.0
OFF_CENTRE = 10.0
NORMALIZE = ("Norm", "Embedding")


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        odd = [(part, why) for part in data.features() if (why := reasons(part, coded(part)))]
        if odd and not _normalized(data):
            part, why = max(odd, key=lambda pair: pair[0]["scale"]["size"][1])
            yield _finding(data, part, why)


def reasons(about: dict[str, Any], left_out: Collection[int] = ()) -> list[str]:
    """Why numbers of this scale are hard to learn from; the first is the gravest."""
    scale = about.get("scale") or {}
    if not scale:
        return []
    found = []
    column, size, low, high = scale["size"]
    if _tiny(scale):
        return [f"no value is beyond {number(max(abs(low), abs(high)))}"]
    if column not in left_out and size > LARGE and max(abs(low), abs(high)) > LARGE:
        found.append(f"column {column} lies between {number(low)} and {number(high)}")
    if "widest" in scale and scale["middle"] > 0 and scale["widest"][1] > UNEVEN * scale["middle"]:
        column, width = scale["widest"]
        times = f"{width / scale['middle']:,.0f} × that of the middle one"
        if column not in left_out:
            found.append(f"column {column} has a standard deviation of {number(width)}, {times}")
    if "offset" in scale and scale["offset"][1] > OFF_CENTRE:
        column, times, mean, width = scale["offset"]
        found.append(f"column {column} has a mean of {number(mean)}, {times:,.0f} × its standard deviation")
    return found


def _tiny(scale: dict[str, Any]) -> bool:
    _, size, low, high = scale["size"]
    return bool(0 < size <= TINY and max(abs(low), abs(high)) <= TINY)


def _takers(data: Data) -> list[dict[str, Any]]:
    """Layers that are given such numbers and do nothing about it."""
    return [each for each in data.given if not any(word in each["kind"] for word in NORMALIZE) and reasons(each)]


def _normalized(data: Data) -> bool:
    """It was looked at what the first layers are given, and none is given numbers like these."""
    return bool(data.given) and not _takers(data)


def _severity(data: Data) -> tuple[Severity, float]:
    if data.scanned or data.learned or data.broken or not _takers(data):
        return "info", 0.7
    if data.constant and all(_tiny(each["scale"]) for each in _takers(data)):
        return "error", 0.85
    if blocked(data) is not None:
        return ("error", 0.9) if data.constant else ("warning", 0.8)
    gross = any(each["scale"]["size"][1] > GROSS for each in _takers(data))
    return ("warning", 0.7) if data.constant and gross else ("info", 0.7)


def _finding(data: Data, part: dict[str, Any], why: list[str]) -> Finding:
    severity, confidence = _severity(data)
    low, high = part["scale"]["size"][2:]
    name = called(part)
    extent = f"values of {number(low)} to {number(high)}" if "between" in why[0] else "columns of very different size"
    if "mean" in why[0]:
        extent = "values far from 0"
    if _tiny(part["scale"]):
        extent = f"all values within {number(low)} and {number(high)}"
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity=severity,
        confidence=confidence,
        title=f"The input {name} is not scaled: {extent}",
        evidence=tuple(_evidence(data, name, why)),
        where=data.where(),
        fix=Fix(_fix(part)),
        seen_by="flight",
        also=data.also(),
    )


def _evidence(data: Data, name: str, why: list[str]) -> Iterable[str]:
    yield f"{name}, over {data.read()}: {'; '.join(why)}"
    takers = _takers(data)
    if takers:
        yield f"`{takers[0]['layer']}` ({takers[0]['kind']}) is given it as it is: {reasons(takers[0])[0]}"
    elif not data.given:
        yield "what the first layer makes of it was not seen"
    flat = blocked(data)
    if flat is not None and not data.learned:
        yield _stopped(flat)
    loss = main_loss(data.learning) if data.learning is not None else None
    if data.learning is not None and loss is not None:
        share = curves.at_constant(data.learning, loss)
        if share is not None:
            yield (
                f"after {loss.count:,} steps the loss is {curves.ended(loss):.4g}, {share:.0%} of what a constant "
                "prediction reaches"
            )
        elif data.learned:
            yield f"the training learns all the same: its loss came from {curves.began(loss):.4g} to {loss.last:.4g}"


def _stopped(flat: Any) -> str:
    if flat.kind == "relu":
        return f"{flat.late_dead:,} of {flat.units:,} units behind `{flat.name}` give 0 for every sample"
    return f"the {flat.kind} behind `{flat.name}` is flat for {flat.late_saturated:.0%} of its values"


def _fix(part: dict[str, Any]) -> str:
    if part["role"] == "image":
        return "Scale the pixels where the samples are made (`x.float() / 255`), or subtract the mean and divide."
    return (
        "Standardize each column once, with the mean and deviation of the training set: "
        "`x = (x - x.mean(0)) / x.std(0)` before the loader is made."
    )


RULE = Rule(
    "unscaled-input",
    "data",
    decide,
    explains=frozenset(("saturated-units", "dead-units", "vanishing-gradient", "no-better-than-constant")),
    gathers=True,
)
