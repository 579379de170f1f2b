"""A loss that is no number, and what it comes from: read once, for every rule that has a share in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from unstuck.model import Case, Severity
from unstuck.rules.learning.measured import Learning, Loss, Site

GROWN = 10.0
"""Times a weight matrix grew between two readings: no healthy step does that."""
SURE = 16
"""Losses that are no number: then it shows whether the parameters are broken, or single batches only."""
SKIPPED = 5
"""Losses that a loss scaler may see overflow until it has found its scale."""
OVERFLOWS = ("exp of", "power ", "root of a number too large")
HALF = {"torch.float16": "65,504"}

Kind = Literal["input", "labels", "operation", "growth", "gradient", "unknown"]


@dataclass(frozen=True)
class Origin:
    """Of one loss that became no number."""

    kind: Kind
    birth: dict[str, Any]
    about: dict[str, Any]
    """What of the birth decides: the operation, the tensor, the weight that grew."""
    loss: Loss | None

    @property
    def step(self) -> int:
        return int(self.birth["step"])

    @property
    def site(self) -> Site | None:
        """The line of what decides; else the one that calls backward."""
        return _site(self.about.get("site")) or self.called

    @property
    def called(self) -> Site | None:
        return _site(self.birth.get("site"))

    @property
    def lasting(self) -> bool:
        """Most losses after it are none either: the parameters are broken."""
        if self.loss is None or self.kind in ("growth", "gradient"):
            return True
        return self.loss.nonfinite >= self.loss.count - int(self.birth.get("before", 0))

    @property
    def severity(self) -> Severity:
        return "error" if self.lasting else "warning"

    def toll(self) -> str:
        """How many losses were no number."""
        if self.loss is None:
            return ""
        whole = self.loss.nonfinite + self.loss.count
        told = f"{self.loss.nonfinite:,} of {whole:,} losses are no number, the first ({self.birth['value']}) at step "
        before = f"; the one before it was {self.birth['last']:.4g}" if self.birth.get("before") else ""
        return f"{told}{self.step:,}{before}"


def origins(learning: Learning, case: Case) -> Iterator[Origin]:
    """Of every loss that became no number, where it came from; once it is seen what became of the run."""
    for birth in learning.births:
        loss = next((each for each in learning.losses if each.site == _site(birth.get("site"))), None)
        if loss is not None and learning.scaler.get("scale") is not None and loss.nonfinite <= SKIPPED and loss.count:
            continue
        kind, about = _decided(birth)
        ruined = kind in ("growth", "gradient")  # there is no way back from that
        if not ruined and loss is not None and loss.nonfinite < SURE and case.outcome == "running":
            continue
        yield Origin(kind, birth, about, loss)


def _decided(birth: dict[str, Any]) -> tuple[Kind, dict[str, Any]]:
    operations = birth.get("operations") or []
    made = next((each for each in operations if each.get("made")), None)
    outside = next((each for each in birth.get("outside") or () if not each["negative_inf_only"]), None)
    grown = _grown(birth)
    if made is not None and "ignore_index" in made["where"]:
        return "labels", made
    if made is not None and made.get("backward"):
        return "operation", made
    if birth.get("broken_parameters"):
        return "gradient", {"parameters": birth["broken_parameters"]}
    if outside is not None and (made is None or outside["order"] <= made["order"]):
        if not outside["shape"]:
            what = "NaN" if outside["nan"] else "infinite"
            return "operation", {
                **outside,
                "where": f"a single number that is {what}, given to `{outside['operation']}`",
            }
        whole = outside["bad_rows"] >= (outside["shape"] or [1])[0]
        return ("growth", grown) if grown is not None and whole else _given(outside, birth)
    if made is not None:
        if grown is not None and made["where"].startswith(OVERFLOWS):
            return "growth", {**grown, "site": made.get("site")}
        return "operation", made
    if grown is not None:
        return "growth", {**grown, "site": operations[0].get("site") if operations else None}
    data = next((each for each in birth.get("inputs") or () if not each["negative_inf_only"]), None)
    if data is not None:
        return _given(data, birth)
    half = next((each for each in operations if each.get("dtype") in HALF), None)
    if half is not None:
        limit = HALF[half["dtype"]]
        return "operation", {**half, "where": f"overflow of half precision (nothing above {limit})", "example": ""}
    return "unknown", operations[0] if operations else {}


def _grown(birth: dict[str, Any]) -> dict[str, Any] | None:
    """The weight matrix that grew most since it was last looked at, if that is far."""
    for weight in birth.get("weights") or ():
        before, now = float(weight["before"]), float(weight["now"])
        if now > GROWN * before > 0:
            return {"name": weight["name"], "before": before, "now": now}
    return None


def _given(tensor: dict[str, Any], birth: dict[str, Any]) -> tuple[Kind, dict[str, Any]]:
    """Data that came so; or what the script made of numbers, without a graph."""
    named = _named(tensor, birth)
    made = next(
        (e["computed"] for e in birth.get("inputs") or () if e["name"] == named["name"] and e.get("computed")), None
    )
    return ("operation", {**named, **made, "made": True}) if made else ("input", named)


def _named(tensor: dict[str, Any], birth: dict[str, Any]) -> dict[str, Any]:
    """By the name that the training has for it, and with the whole data it was taken from, where that is at hand."""
    inputs = birth.get("inputs") or []
    same = [each for each in inputs if each["address"] == tensor["address"] and each["shape"] == tensor["shape"]]
    same = same or [each for each in inputs if each["shape"] == tensor["shape"] and each["rows"] == tensor["rows"]]
    name = same[0]["name"] if same else tensor.get("name", "")
    larger = next(
        (e for e in inputs if e["shape"][1:] == tensor["shape"][1:] and e["shape"][0] > tensor["shape"][0]), None
    )
    return {**tensor, "name": name, "whole": larger, "samples": _samples(tensor, birth)}


def _samples(tensor: dict[str, Any], birth: dict[str, Any]) -> list[int]:
    """Indices in the data set of the bad rows, where the batch came from a loader and was not cut."""
    for batch in birth.get("batch") or ():
        indices = batch.get("indices")
        if indices and tensor["shape"] and batch["size"] == tensor["shape"][0]:
            return [indices[row] for row in tensor["rows"] if row < len(indices)]
    return []


def line(site: Site | None) -> str:
    """train.py:31"""
    return f"{os.path.basename(site[0])}:{site[1]}" if site else ""


def listed(numbers: list[int], more: int = 0) -> str:
    """411, 733 and 5 more"""
    text = ", ".join(f"{number:,}" for number in numbers)
    rest = more - len(numbers)
    return f"{text} and {rest:,} more" if rest > 0 else text


def _site(site: Any) -> Site | None:
    return (site[0], site[1], site[2]) if site else None
