"""label-out-of-range: a label is no class of the model's.

What it sees
    The loss function raised, and the labels it was given, read in the dying process, hold one that is negative or
    not below the number of classes.

Why training stops
    Cross-entropy looks up the score of the labelled class; for a class that does not exist there is none.

Evidence
    The label, the number of classes, how many labels of the batch are wrong, its place in the batch, and the index
    of the sample where the batch's indices are known.

Fix
    Labels from 1 to N must become 0 to N−1; or the last layer needs more outputs; or the odd label is bad data, to
    be mended or given as `ignore_index`.

When it is wrong
    On a GPU the labels cannot be read after the failure: then nothing is said here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import spot
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    labels = wrong_labels(end) if end is not None else {}
    if end is None or end.error is None or not labels:
        return
    label, classes, least, most = labels["label"], labels["classes"], labels.get("least"), labels.get("most")
    error = next((e for e in end.error.whole if e.user is not None), end.error)
    sample = _sample(end, labels)
    where = replace(end.where(error.user, error), sample=sample, worker=None)
    yield Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.98,
        title=f"label {label} is not a class: the model has {classes} (0 to {classes - 1})"
        + (f"; it is sample {sample}" if sample is not None else ""),
        evidence=(
            f"`{error.said}` at {spot(error.user)}",
            f"scores of shape {labels['scores']} are for {classes} classes; the labels of this batch go from {least} "
            f"to {most}",
            f"{labels['wrong']} of its labels {'is' if labels['wrong'] == 1 else 'are'} wrong; the first is number "
            f"{labels.get('place')} of the batch" + (f", sample {sample}" if sample is not None else ""),
            end.progress(),
        ),
        where=where,
        fix=Fix(_fix(label, classes, least, most, labels.get("ignored"))),
        seen_by="exit",
    )


def wrong_labels(end: Death) -> dict[str, Any]:
    found = end.error.torch.get("labels") if end.error is not None else None
    return found if isinstance(found, dict) and found.get("wrong") and "label" in found else {}


def _sample(end: Death, labels: dict[str, Any]) -> int | None:
    """The index, where one loader alone can have given this batch and its size is that of the labels."""
    told = [b for b in (end.error.data.get("batches") if end.error else None) or () if isinstance(b, dict)]
    fitting = [b for b in told if b.get("indices") and len(b["indices"]) == (labels.get("shape") or [0])[0]]
    place = labels.get("place")
    if len(fitting) != 1 or len(told) != 1 or not isinstance(place, int) or _out_of_order(end):
        return None
    return int(fitting[0]["indices"][place])


def _out_of_order(end: Death) -> bool:
    return any(f.kind == "loader" and f.pid == end.pid and f.data.get("in_order") is False for f in end.case.facts)


def _fix(label: int, classes: int, least: int | None, most: int | None, ignored: object) -> str:
    if most == classes and (least or 0) >= 1:
        return f"The labels run from {least} to {most}: subtract 1, so that they run from 0 to {classes - 1}."
    if label < 0:
        return (
            f"If {label} marks samples without a label, pass `ignore_index={label}` to the loss (it is {ignored}); "
            "else mend this label."
        )
    return (
        f"Give the last layer {(most or label) + 1} outputs if {most or label} is a real class; if it is bad data, "
        "mend or leave out this sample."
    )


RULE = Rule("label-out-of-range", "death", decide)
