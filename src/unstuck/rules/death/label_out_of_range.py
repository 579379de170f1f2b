"""label-out-of-range: a label is no class of the model's.

What it sees
    The loss function raised, and the labels it was given, read in the dying process, hold one that is negative or
    not below the number of classes.

Why it matters
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

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.deaths import Labels
from unstuck.rules.death.died import Death, death
from unstuck.rules.death.errors import said, spot, user_line, whole
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    labels = end.died.labels if end is not None and end.died is not None else None
    if end is None or end.died is None or labels is None or labels.label is None or labels.classes is None:
        return
    label, classes, least, most = labels.label, labels.classes, labels.least, labels.most
    raised = next((each for each in whole(end.died.raised) if user_line(each)), end.died.raised)
    line, sample = user_line(raised), _sample(end, labels)
    where = replace(end.where(line, end.died), sample=sample, worker=None)
    yield RULE.finding(
        severity="error",
        confidence=0.98,
        title=f"label {label} is not a class: the model has {classes} (0 to {classes - 1})"
        + (f"; it is sample {sample}" if sample is not None else ""),
        evidence=(
            f"`{said(raised)}` at {spot(line)}",
            f"scores of shape {labels.scores} are for {classes} classes; the labels of this batch go from {least} "
            f"to {most}",
            f"{labels.wrong} of its labels {'is' if labels.wrong == 1 else 'are'} wrong; the first is number "
            f"{labels.place} of the batch" + (f", sample {sample}" if sample is not None else ""),
            end.progress(),
        ),
        where=where,
        fix=Fix(_fix(label, classes, least, most, labels.ignored)),
        seen_by="exit",
    )


def _sample(end: Death, labels: Labels) -> int | None:
    """The index, where one loader alone can have given this batch and its size is that of the labels."""
    batches = end.died.batches if end.died is not None else []
    indices = batches[0].indices if len(batches) == 1 else None
    out_of_order = any(each.pid == end.pid and not each.in_order for each in end.case.loaders)
    if labels.place is None or not indices or out_of_order or len(indices) != (labels.shape or [0])[0]:
        return None
    return indices[labels.place]


def _fix(label: int, classes: int, least: int | None, most: int | None, ignored: int | None) -> str:
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
