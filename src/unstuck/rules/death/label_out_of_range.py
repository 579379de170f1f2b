"""label-out-of-range: a label is not one of the model's classes.

What it sees
    The loss function raised, and among its labels, read in the dying process, is one that is negative or not below
    the number of classes.

Why it matters
    Cross-entropy looks up the score of the labelled class. That class does not exist, so the loss raises and the run
    ends; on a GPU it takes the whole CUDA context with it.

Evidence
    The label, the number of classes, how many labels of the batch are wrong, its position in the batch, and the index
    of the sample if the indices of the batch are known.

Fix
    Labels from 1 to N must become 0 to N−1; or the last layer needs more outputs; or the label is bad data, to be
    repaired or passed as `ignore_index`.

When it is wrong
    On a GPU the labels cannot be read after the failure: then this rule is silent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding
from unstuck.recorder.records.deaths import Labels
from unstuck.rules.death.post_mortem import Death, death, exception_text, user_line, with_causes
from unstuck.rules.rule import Rule
from unstuck.rules.words import place


def decide(case: Case) -> Iterable[Finding]:
    end = death(case)
    died = end.died if end is not None else None
    labels = died.labels if died is not None else None
    if end is None or died is None or labels is None or labels.label is None or labels.classes is None:
        return
    label, classes = labels.label, labels.classes
    raised = next((each for each in with_causes(died.raised) if user_line(each)), died.raised)
    line, sample = user_line(raised), _sample(end, labels)
    yield RULE.finding(
        severity="error",
        confidence=0.98,
        title=f"label {label}{f' of sample {sample}' if sample is not None else ''} is not a class: the model has "
        f"{classes} (0 to {classes - 1})",
        evidence=(
            f"`{exception_text(raised)}` at {place(line)}",
            f"scores of shape {labels.scores} are for {classes} classes; the labels of this batch go from "
            f"{labels.least} to {labels.most}",
            f"{labels.wrong} of its labels {'is' if labels.wrong == 1 else 'are'} wrong; the first is number "
            f"{labels.place} of the batch" + (f", sample {sample}" if sample is not None else ""),
            end.progress(),
        ),
        where=replace(end.where(line, died), sample=sample, worker=None),
        fix=_fix(labels, label, classes),
        seen_by="exit",
    )


def _sample(end: Death, labels: Labels) -> int | None:
    """The index, if one loader alone can have given this batch and its size is that of the labels."""
    batches = end.died.batches if end.died is not None else []
    indices = batches[0].indices if len(batches) == 1 else None
    out_of_order = any(loader.pid == end.pid and not loader.in_order for loader in end.case.loaders)
    if labels.place is None or not indices or out_of_order or len(indices) != (labels.shape or [0])[0]:
        return None
    return indices[labels.place]


def _fix(labels: Labels, label: int, classes: int) -> str:
    if labels.most == classes and (labels.least or 0) >= 1:
        return f"The labels are {labels.least} to {labels.most}: subtract 1, so that they are 0 to {classes - 1}."
    if label < 0:
        return (
            f"If {label} marks samples without a label, pass `ignore_index={label}` to the loss (it is "
            f"{labels.ignored}); else repair this label."
        )
    largest = labels.most or label
    return (
        f"Give the last layer {largest + 1} outputs if {largest} is a real class; if it is bad data, repair or drop "
        "this sample."
    )


RULE = Rule("label-out-of-range", "death", decide)
