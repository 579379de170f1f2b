"""parameters-not-in-optimizer: layers that the loss depends on, and that no optimizer has.

What it sees
    Parameters that the graph of the loss ends in, that want gradients, and that are in no optimizer: layers kept in a
    plain list or dict, layers put in after the optimizer was built, a model other than the one the optimizer was given,
    a part that was forgotten.

Why it matters
    It goes on, with these layers at the random weights they began with. What is learned is what the rest can make of
    them.

Evidence
    Names and sizes of the parameters, in how many losses they were, that they never moved, and what keeps them from the
    optimizer.

Fix
    Register the layers (`nn.ModuleList`, `nn.ModuleDict`, `self.x = layer`), build the optimizer after the model is
    whole, and give it all parameters that are to be trained.

When it is wrong
    Parts that are frozen on purpose. Those that were trained or loaded before, that another optimizer has, that are
    moved by hand or that stand in eval mode in front of the trained part are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import BuiltOptimizer, KeptInList, Learning, Parameter
from unstuck.rules.learning.measured import layer_of, where
from unstuck.rules.learning.ownership import count, layers, line, matrices
from unstuck.rules.rule import Rule

READ = 4
"""Graphs that must have ended in a parameter: what is made anew each step is no parameter."""
STEPS = 8
"""Of an optimizer."""
SURE = 0.9
"""Confidence from which on it is said at once."""
PATIENT = 60
"""Steps after which what was only left out has had its time to be added."""


@dataclass(frozen=True)
class Why:
    """What keeps the parameters from the optimizer."""

    text: str
    fix: str
    site: Site | None
    sure: float
    loud: bool = True


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        stepping = [each for each in learning.built if each.steps >= STEPS]
        lost = [each for each in learning.parameters if _lost(each)]
        if not stepping or not lost:
            continue
        yield from _findings(learning, stepping, lost, case.outcome == "finished")


def _lost(each: Parameter) -> bool:
    if each.held is not None or each.owner is not None or each.moved or not each.is_parameter:
        return False
    return each.trainable and each.in_graph >= READ


def _findings(
    learning: Learning, stepping: list[BuiltOptimizer], lost: list[Parameter], ended: bool
) -> Iterable[Finding]:
    whole = sum(each.numel for each in learning.parameters if each.in_graph and each.trainable)
    why = _why(learning, stepping, lost)
    if why is None or (why.sure < SURE and not ended and max(each.steps for each in stepping) < PATIENT):
        return
    share = sum(each.numel for each in lost) / max(whole, 1)
    yield RULE.finding(
        severity="error" if why.loud else "info",
        confidence=why.sure,
        title=f"{layers(lost, 2)}: in the model, but in no optimizer, so never trained",
        evidence=(
            f"{count(lost)}, {share:.0%} of what the loss depends on, are in no optimizer: {layers(lost, 6)}",
            f"{max(each.in_graph for each in lost)} graphs of the loss end in them; in {learning.steps:,} steps none "
            f"has moved",
            why.text,
        ),
        where=where(learning, why.site),
        fix=Fix(why.fix),
        seen_by="flight",
        also=tuple(where(learning, each.site) for each in stepping[:1] if each.site and each.site != why.site),
    )


def _why(learning: Learning, stepping: list[BuiltOptimizer], lost: list[Parameter]) -> Why | None:
    optimizer = stepping[0]
    names = {layer_of(each) for each in lost} | {each.name for each in lost}
    for kept in learning.kept_in:
        if any(name.startswith(kept.module) for name in names):
            return _kept_in(kept, optimizer)
    if not any(each.in_graph for each in stepping):
        return Why(
            f"the {optimizer.kind} built at {line(optimizer.site)} has {optimizer.parameters} parameters of which the "
            f"loss reaches none: it was given another model",
            "Build the optimizer from the model that is trained, after that is in its final form.",
            optimizer.site,
            0.96,
        )
    shapes = [stray.shape for stray in learning.strays]
    replaced = [each for each in lost if each.shape in shapes or _same_input(each.shape, shapes)]
    if learning.strays and replaced:
        return Why(
            f"the optimizer still has {len(learning.strays)} parameters that no model has any more (of shapes "
            f"{', '.join(map(str, shapes[:3]))}): {layers(replaced, 3)} took their place after "
            f"it was built",
            "Build the optimizer after the last layer is in its place.",
            optimizer.site,
            0.95,
        )
    return _forgotten(optimizer, lost)


def _kept_in(kept: KeptInList, optimizer: BuiltOptimizer) -> Why:
    made = "ModuleDict" if kept.container == "dict" else "ModuleList"
    return Why(
        f"{kept.kind} keeps them in the plain {kept.container} `self.{kept.attribute}`: `parameters()` does not look "
        "into it",
        f"Make `self.{kept.attribute}` an `nn.{made}`.",
        kept.site or optimizer.site,
        0.97,
    )


def _same_input(shape: list[int], shapes: list[list[int]]) -> bool:
    return len(shape) > 1 and any(shape[1:] == other[1:] and len(shape) == len(other) for other in shapes)


def _forgotten(optimizer: BuiltOptimizer, lost: list[Parameter]) -> Why | None:
    """Left out when the optimizer was built. Deliberate, if they were trained before: then they are not random."""
    weights = matrices(lost)
    fresh = [each for each in weights if each.fresh]
    if len(fresh) < 0.7 * len(weights):
        return None
    sure = bool(fresh)
    return Why(
        f"the {optimizer.kind} built at {line(optimizer.site)} was given {optimizer.parameters} parameters, not these"
        + (", which still have the random weights they began with" if sure else ""),
        "Give the optimizer these parameters too; if they are to stay so, say it with `requires_grad_(False)`.",
        optimizer.site,
        0.85 if sure else 0.6,
        loud=sure,
    )


RULE = Rule(
    "parameters-not-in-optimizer",
    "learning",
    decide,
    explains=frozenset(("no-better-than-constant", "graph-cut", "vanishing-gradient", "learning-rate-too-low")),
    gathers=True,
)
