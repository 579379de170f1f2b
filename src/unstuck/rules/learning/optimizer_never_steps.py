"""optimizer-never-steps: gradients are computed, and no optimizer ever uses them.

What it sees
    Backward passes, and an optimizer for the parameters they reach whose `step` never ran; or whose steps found no
    gradient, because the gradients were cleared between `backward` and `step`. Or no optimizer at all, no weight that
    ever changes, and a line that computes new weights which nothing gets: `p = p - lr * g` in a loop gives the name `p`
    to the result and leaves the weight as it was; or an update in a loop over an iterator that is used up
    (`self.params = model.parameters()`).

Why it matters
    No weight ever changes: the loss stays where it was at the start, and the whole run is wasted.

Evidence
    The number of backward passes and steps, whether the gradients were cleared in between, and that no weight moved.

Fix
    Call `optimizer.step()` after `backward()`, before the gradients are cleared. By hand, change the weight in place
    under `torch.no_grad()`: `p -= lr * g`; keep parameters in a list.

When it is wrong
    Accumulating over very many batches looks the same until the first step; so during the run this is reported only
    where the gradients were thrown away, or after hundreds of backward passes. Weights that the script updates by hand
    move, and are not reported. Without an optimizer a finding needs both: weights that were measured not to move, and
    the line; gradients that are only looked at (attribution, Fisher information, benchmarks) have no such line. New
    weights that any code reads (the fast weights of meta-learning) are not lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.learning import BuiltOptimizer, Learning, LostUpdate, Parameter
from unstuck.rules.rule import Rule
from unstuck.rules.training import counted, line, loss_site, where

MIN_BACKWARDS_FINISHED = 10
MIN_BACKWARDS_CLEARED = 20  # of a run that goes on and clears its gradients each time
MIN_BACKWARDS = 400  # of a run that may still be accumulating
MIN_BACKWARDS_OTHER = 100  # where another optimizer steps: this one may be meant for later
MIN_STEPS = 10  # without a gradient


LOST = {  # what becomes of an update, and what to do instead
    "dropped": (
        "drops them",
        "Write the result into the weight, under `torch.no_grad()`: `p -= lr * g`, or `p.copy_(new)`.",
    ),
    "rebound": (
        "only gives them to the loop's variable",
        "Change the weight in place, under `torch.no_grad()`: `p -= lr * g` (or `p.sub_(lr * g)`). `p = p - lr * g` "
        "makes a new tensor and leaves the weight as it was.",
    ),
    "copy": (
        "writes them into a copy",
        "Update the weights themselves, without `clone()` or `copy`; or write the copy back after the update "
        "(`p.copy_(new)` under `torch.no_grad()`, or `load_state_dict`).",
    ),
}


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        if (learning.scaler is not None and learning.scaler.updates) or learning.leaf_losses:
            continue
        lost = learning.lost_update
        if lost is not None and not learning.built and _stands_still(learning, lost):
            yield _used_up(learning, lost) if lost.how == "used_up" else _lost(learning, lost)
        for optimizer in learning.built:
            held = [p for p in learning.parameters if p.held == optimizer.number and p.in_graph]
            if not held or any(parameter.moved for parameter in held):
                continue
            if not optimizer.steps and _long_enough(case, learning, optimizer):
                yield _no_step(learning, optimizer, held)
            elif optimizer.steps >= MIN_STEPS and _cleared_too_early(held):
                yield _no_gradient(learning, optimizer, held)


def _long_enough(case: Case, learning: Learning, optimizer: BuiltOptimizer) -> bool:
    finished = case.outcome == "finished"
    if any(other.steps for other in learning.built):
        return finished and learning.backwards >= MIN_BACKWARDS_OTHER
    if finished:
        return learning.backwards >= MIN_BACKWARDS_FINISHED
    cleared = optimizer.clears >= 0.5 * learning.backwards
    return learning.backwards >= (MIN_BACKWARDS_CLEARED if cleared else MIN_BACKWARDS)


def _passes(learning: Learning) -> int:
    """`autograd.grad` is no backward pass, but its losses count."""
    return max(learning.backwards, *(loss.count for loss in learning.losses), 0)


def _stands_still(learning: Learning, lost: LostUpdate) -> bool:
    reached = [parameter for parameter in learning.parameters if parameter.in_graph]
    if not reached or _passes(learning) < MIN_BACKWARDS_CLEARED:
        return False
    still = not learning.steps and not learning.optimizers and not any(parameter.moved for parameter in reached)
    if lost.how == "used_up":  # its first loop may have been an update that works
        return still or learning.steps == 1
    return still and not learning.passing


def _used_up(learning: Learning, lost: LostUpdate) -> Finding:
    passes, name = _passes(learning), lost.name.removeprefix(".")
    reached = [parameter for parameter in learning.parameters if parameter.in_graph]
    only = "after the first update " if learning.steps else ""
    return RULE.finding(
        severity="error",
        confidence=0.96,
        title=f"{passes:,} times gradients were computed, but {only}no weight changes: `{name}` is an iterator that is "
        "used up",
        evidence=(
            f"{passes:,} losses at {line(loss_site(learning))} had gradients for {counted(reached)}; "
            f"{'these changed once' if learning.steps else 'none of these has moved'}",
            f"the update in line {lost.loop} goes through `{name}`, an iterator that an earlier loop went through to "
            "its end: there is nothing left in it",
            "no optimizer of torch was made",
        ),
        where=where(learning, lost.site),
        fix=f"Keep a list: `{name} = list(…)`. What `model.parameters()`, `filter` or a generator expression gives can "
        "be gone through only once.",
    )


def _lost(learning: Learning, lost: LostUpdate) -> Finding:
    site, passes = loss_site(learning), _passes(learning)
    reached = [parameter for parameter in learning.parameters if parameter.in_graph]
    lost_as, fix = LOST[lost.how]
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"{passes:,} times gradients were computed, but no weight ever changes: {line(lost.site)} {lost_as}",
        evidence=(
            f"{passes:,} losses at {line(site)} had gradients for {counted(reached)}, and none of these has moved",
            f"{line(lost.site)} computes new weights and {lost_as}",
            "no optimizer was made",
        ),
        where=where(learning, lost.site),
        fix=fix,
    )


def _cleared_too_early(held: list[Parameter]) -> bool:
    seen = [parameter for parameter in held if parameter.seen >= 5]
    return bool(seen) and all(parameter.none + parameter.zero == parameter.seen for parameter in seen)


def _no_step(learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Finding:
    site = loss_site(learning) or optimizer.site
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"{learning.backwards:,} backward passes, but the optimizer never makes a step",
        evidence=(
            f"{learning.backwards:,} backward passes at {line(site)}, and 0 steps of the {optimizer.kind} built at "
            f"{line(optimizer.site)}",
            f"none of its {counted(held)} has moved",
            f"its gradients were cleared {optimizer.clears:,} times, unused" if optimizer.clears else "",
        ),
        where=where(learning, site),
        fix=f"Call `optimizer.step()` (with the parentheses) after the backward pass at {line(site)}; if it is under "
        "an `if`, that condition is never true.",
    )


def _no_gradient(learning: Learning, optimizer: BuiltOptimizer, held: list[Parameter]) -> Finding:
    site = loss_site(learning) or optimizer.site
    seen = max(parameter.seen for parameter in held)
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title="The gradients are gone when the optimizer steps: no weight ever moves",
        evidence=(
            f"in all {seen} steps observed, none of {counted(held)} had a gradient left, though {learning.backwards:,} "
            f"backward passes at {line(site)} reach them",
            f"zero_grad was called {optimizer.clears or learning.clears:,} times for {optimizer.steps:,} steps of this "
            f"{optimizer.kind}, and no weight has moved",
        ),
        where=where(learning, site),
        fix="Clear the gradients before `backward()` or after `step()`, not between the two.",
    )


RULE = Rule(
    "optimizer-never-steps",
    "learning",
    decide,
    explains=frozenset(("learning-rate-too-low", "vanishing-gradient")),
    gathers=True,
)
