"""parameters-not-in-optimizer: the loss depends on layers that no optimizer has.

What it sees
    Parameters in the graph of the loss that require gradients and are in no optimizer: layers kept in a plain list or
    dict, layers added after the optimizer was built, an optimizer for another model, a part that was forgotten, layers
    that are released (`requires_grad_(True)`) for a second stage and not given to the optimizer of the first.

Why it matters
    These layers keep the random weights they started with. The rest of the model learns only what it can make of them.

Evidence
    Names and sizes of the parameters, how many losses used them, that they never moved, and what keeps them out of the
    optimizer.

Fix
    Register the layers (`nn.ModuleList`, `nn.ModuleDict`, `self.x = layer`), build the optimizer after the model is
    complete, and pass it all parameters that should train.

When it is wrong
    Parts that are frozen on purpose. Those that were trained or loaded before, that another optimizer has, that the
    script updates by hand, or that are in eval mode before the trained part are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unstuck.model import Case, Finding
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import BuiltOptimizer, KeptInList, Learning, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, layer_names, layer_of, line, random_matrices, where

MIN_GRAPHS = 4  # that use a parameter: what is made anew in each step is none
MIN_STEPS = 8
MIN_STEPS_UNSURE = 60  # by then a part that was left out would have been added
SURE = 0.9  # confidence from which on it is said at once
MIN_RANDOM_SHARE = 0.7  # of the matrices: others were trained before, and left out on purpose


@dataclass(frozen=True)
class Reason:
    """What keeps the parameters out of the optimizer."""

    text: str
    fix: str
    site: Site | None
    confidence: float


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        stepping = [optimizer for optimizer in learning.built if optimizer.steps >= MIN_STEPS]
        released = [parameter for parameter in learning.parameters if _is_released(parameter, learning)]
        missing = released or [parameter for parameter in learning.parameters if _is_missing(parameter)]
        if not stepping or not missing:
            continue
        optimizer = stepping[-1 if released else 0]
        reason = _released(optimizer, released) if released else _reason(learning, stepping, missing)
        if reason is None:
            continue
        early = case.outcome != "finished" and max(optimizer.steps for optimizer in stepping) < MIN_STEPS_UNSURE
        if reason.confidence >= SURE or not early:
            late = max((parameter.late or 0 for parameter in released), default=0)
            yield _finding(learning, optimizer, missing, reason, late)


def _is_missing(parameter: Parameter) -> bool:
    if parameter.held is not None or parameter.owner is not None or parameter.moved or not parameter.is_parameter:
        return False
    return parameter.trainable and parameter.in_graph >= MIN_GRAPHS


def _is_released(parameter: Parameter, learning: Learning) -> bool:
    """It joined a training that was under way, and nothing has moved it since."""
    if parameter.late is None or not parameter.is_parameter or not parameter.trainable:
        return False
    holders = [optimizer for optimizer in learning.built if optimizer.number == parameter.held]
    if any(optimizer.steps > parameter.late or not optimizer.steps for optimizer in holders):
        return False  # it may still be about to train it
    trained = [other for other in learning.parameters if learning.built and other.owner == learning.built[-1].number]
    if not any(other.grads and other.grads[0][0] < parameter.late for other in trained):
        return False  # another model is trained now, and all of it is new
    return parameter.in_graph >= MIN_GRAPHS and learning.steps - parameter.late >= MIN_STEPS_UNSURE


def _released(optimizer: BuiltOptimizer, released: list[Parameter]) -> Reason:
    since = min(parameter.late or 0 for parameter in released)
    return Reason(
        f"the loss has reached them since step {since:,}, and did not before: they were released then, but the "
        f"{optimizer.kind} built at {line(optimizer.site)} has {optimizer.parameters} parameters, and not these",
        "Give them to the optimizer when you release them: `optimizer.add_param_group({'params': …})`, or build a new "
        "one from all parameters.",
        optimizer.site,
        0.92,
    )


def _reason(learning: Learning, stepping: list[BuiltOptimizer], missing: list[Parameter]) -> Reason | None:
    optimizer = stepping[0]
    names = {layer_of(parameter) for parameter in missing} | {parameter.name for parameter in missing}
    for kept in learning.kept_in:
        if any(name.startswith(kept.module) for name in names):
            return _in_plain_container(kept, optimizer)
    if not any(other.in_graph for other in stepping):
        return Reason(
            f"the loss reaches none of the {optimizer.parameters} parameters of the {optimizer.kind} built at "
            f"{line(optimizer.site)}: they are of another model",
            "Build the optimizer from the model that is trained, once that is in its final form.",
            optimizer.site,
            0.96,
        )
    shapes = [stray.shape for stray in learning.strays]
    replacing = [p for p in missing if p.shape in shapes or _same_input_size(p.shape, shapes)]
    if replacing:
        return Reason(
            f"the optimizer still has {len(shapes)} parameters that are in no model any more (of shape "
            f"{', '.join(map(str, shapes[:3]))}): {layer_names(replacing, 3)} replaced them after it was built",
            "Build the optimizer after the last layer is in place.",
            optimizer.site,
            0.95,
        )
    return _left_out(learning, optimizer, missing)


def _in_plain_container(kept: KeptInList, optimizer: BuiltOptimizer) -> Reason:
    container = "ModuleDict" if kept.container == "dict" else "ModuleList"
    return Reason(
        f"{kept.kind} keeps them in the plain {kept.container} `self.{kept.attribute}`, which `parameters()` does not "
        "search",
        f"Make `self.{kept.attribute}` an `nn.{container}`.",
        kept.site or optimizer.site,
        0.97,
    )


def _same_input_size(shape: list[int], shapes: list[list[int]]) -> bool:
    return len(shape) > 1 and any(shape[1:] == other[1:] and len(shape) == len(other) for other in shapes)


def _left_out(learning: Learning, optimizer: BuiltOptimizer, missing: list[Parameter]) -> Reason | None:
    """Forgotten when the optimizer was built; on purpose, if they are not random any more."""
    matrices = random_matrices(missing)
    random = [matrix for matrix in matrices if matrix.fresh and not _may_be_copy(matrix, learning)]
    if len(random) < MIN_RANDOM_SHARE * len(matrices):
        return None
    return Reason(
        f"the {optimizer.kind} built at {line(optimizer.site)} has {optimizer.parameters} parameters, but not these"
        + (", which still have the random weights they started with" if random else ""),
        "Pass these parameters to the optimizer too; if they should stay as they are, freeze them with "
        "`requires_grad_(False)`.",
        optimizer.site,
        0.85 if random else 0.6,
    )


def _may_be_copy(parameter: Parameter, learning: Learning) -> bool:
    """It came later than one of the same shape that was trained: probes on copies of a body, say."""
    late, alike = parameter.late, [p for p in learning.parameters if p.owner is not None and p.shape == parameter.shape]
    return late is not None and any(other.grads and other.grads[0][0] < late for other in alike)


def _finding(
    learning: Learning, optimizer: BuiltOptimizer, missing: list[Parameter], reason: Reason, late: int
) -> Finding:
    """`late`: the step at which they were released; 0: they were there from the beginning."""
    whole = sum(p.numel for p in learning.parameters if p.in_graph and p.trainable)
    share = sum(parameter.numel for parameter in missing) / max(whole, 1)
    since = f"trainable since step {late:,}" if late else "in the model"
    elsewhere = optimizer.site and optimizer.site != reason.site
    return RULE.finding(
        severity="error" if reason.confidence > 0.6 else "info",
        confidence=reason.confidence,
        title=f"{layer_names(missing, 2)}: {since}, but in no optimizer, so {'not' if late else 'never'} trained",
        evidence=(
            f"{counted(missing)}, {share:.0%} of what the loss depends on, are in no optimizer"
            f"{' that steps' if late else ''}: {layer_names(missing, 6)}",
            f"the loss depends on them in {max(p.in_graph for p in missing)} sampled steps, but none has moved in "
            f"{learning.steps - late:,} steps",
            reason.text,
        ),
        where=where(learning, reason.site),
        fix=reason.fix,
        also=(where(learning, optimizer.site),) if elsewhere else (),
    )


RULE = Rule(
    "parameters-not-in-optimizer",
    "learning",
    decide,
    explains=frozenset(("graph-cut", "vanishing-gradient", "learning-rate-too-low")),
    gathers=True,
)
