"""loss-broadcasts: prediction and target have different shapes, and every prediction is compared with every target.

What it sees
    Between the prediction and the loss the shape grows: a prediction of shape [32, 1] and a target of shape [32] give
    differences of shape [32, 32].

Why it matters
    Every prediction is pulled towards the targets of all samples, that is, to their mean: the model learns to give the
    same for everything, with a loss that looks like the variance of the targets.

Evidence
    Both shapes and that of the difference, from the graph of the loss, and the variance of the targets.

Fix
    Give both the same shape: `prediction.squeeze(1)` or `target.unsqueeze(1)`.

When it is wrong
    Losses that compare everything with everything on purpose: distances between outputs of the model are not
    reported, nor is a target that was given as one number for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.learning import Learning, LossHead
from unstuck.rules.learning import curves
from unstuck.rules.learning.measured import loss_of, where
from unstuck.rules.rule import Rule

TIMES = 3
"""Graphs read with that shape: the last batch of an epoch may be of another one."""
BUILT_IN = ("mse", "smooth_l1", "huber")
"""Loss functions that expect as many predictions as targets."""


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for head in learning.heads:
            if head.times < TIMES or head.broadcast is None:
                continue
            given, whole = head.broadcast
            if _crossed(given, whole) or (head.op in BUILT_IN and _short(given, whole)):
                yield _finding(learning, head, given, whole)
                break


def _crossed(given: list[int], whole: list[int]) -> bool:
    """The samples of the prediction stand against the samples of the target: [N, 1] and [N] give [N, N]."""
    samples = max(given, default=0)
    return samples > 1 and prod(whole) >= prod(given) * samples and whole.count(samples) >= 2


def _short(given: list[int], whole: list[int]) -> bool:
    """One output for several targets."""
    return len(given) == len(whole) and prod(given) > 1 and given[-1] == 1 and whole[-1] > 1


def _finding(learning: Learning, head: LossHead, given: list[int], whole: list[int]) -> Finding:
    crossed = _crossed(given, whole)
    target = _target(head, given, whole)
    loss = loss_of(learning, head)
    evidence = [
        f"prediction {given} and target {target} were made to {whole}: {prod(whole):,} differences for a prediction of "
        f"{prod(given):,} numbers, in {head.times:,} of the graphs read"
    ]
    deviation = head.target.sd
    if crossed and loss is not None and loss.points and deviation:
        evidence.append(
            f"the loss can then not get far below the variance of the targets, {curves.number(deviation**2)}; it is "
            f"{curves.number(curves.ended(loss))} after {loss.count:,} steps"
        )
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"The loss compares a prediction of shape {given} with a target of shape {target}: they are broadcast to "
        f"{whole}",
        evidence=tuple(evidence),
        where=where(learning, head.site),
        fix=Fix(
            "Give both the same shape before the loss: `prediction.squeeze(-1)`, or `target.unsqueeze(-1)`."
            if crossed
            else f"Let the last layer give {whole[-1]} numbers a sample, as many as the target has."
        ),
        seen_by="flight",
    )


def _target(head: LossHead, given: list[int], whole: list[int]) -> list[int]:
    """Its shape before it was blown up; of an expanded one, leading ones were put there by that."""
    expanded = head.target.expanded
    if not expanded:
        if not _crossed(given, whole):
            return whole
        return [max(given)] if len(given) > 1 else [max(given), 1]
    while len(expanded) > 1 and expanded[0] == 1:
        expanded = expanded[1:]
    return expanded


RULE = Rule(
    "loss-broadcasts",
    "learning",
    decide,
    explains=frozenset(
        ("no-better-than-constant", "still-improving", "target-scale", "wrong-loss-for-target", "loss-oscillates")
    ),
    gathers=True,
)
