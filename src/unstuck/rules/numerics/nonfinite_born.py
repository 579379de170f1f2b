"""nonfinite-born: an operation of the model or the loss turns finite numbers into NaN or Inf.

What it sees
    The loss became NaN or Inf. In the graph of that very loss, the oldest operation whose input is finite and whose
    result is not: log of 0, division by 0, an exp that overflows, the square root of a negative number, a softmax over
    a fully masked row, a standard deviation of one value. Or what the script computes outside of the graph (weights,
    advantages, targets, the logarithm of an input in `forward` or `__getitem__`, the root of a running variance that
    rounding makes negative) is NaN though everything it is computed from is finite. Or the loss is finite and its
    gradient is not: the slope of a square root at 0.

Why it matters
    The gradient of such a loss is NaN, and after the next update every parameter is. All later losses are NaN.

Evidence
    The operation, its input, in which rows, after which layer, its line in the script, and the step.

Fix
    Use the form that cannot overflow (`log_softmax`, `logsumexp`, `binary_cross_entropy_with_logits`), or keep the
    input away from the edge (`clamp_min(1e-8)`, `sqrt(x + eps)`).

When it is wrong
    Parameters that a far too large update made NaN are reported as exploding-gradient, not here. Where activations are
    recomputed (checkpointing) or compiled, the graph does not show the operation. On a GPU a loss is read some steps
    late, so as not to wait for it: then the step is exact, but the operation is known only with `--trace-nan`.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import GrownWeight, Operation, Scaler
from unstuck.rules.numerics.nan_causes import (
    GENERAL_FIX,
    Cause,
    fix_of,
    has_collapsed,
    listed,
    nan_causes,
    reason,
    samples_of,
)
from unstuck.rules.rule import Rule
from unstuck.rules.training import explodes_at_first, largest_first_update, line, loss_site, measured_matrices, where

MIN_LEFT_ALONE = (
    256  # bad losses: by then it shows whether the scale of data or targets made the first gradient so large
)
MAX_STEPS_AGO = 2  # that a steep operation was last seen
TRACE_FIX = (
    "Run it once more with `unstuck run --trace-nan`: it waits for each loss, and names the operation while its graph "
    "still exists."
)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        explodes = any(map(explodes_at_first, measured_matrices(learning)))
        rate_did_it = largest_first_update(learning) > 1 and not explodes
        for cause in nan_causes(learning, case):
            if cause.kind == "operation" and isinstance(cause.part, Operation):
                yield _operation(learning, cause, cause.part)
            elif cause.kind in ("growth", "gradient", "unknown") and not rate_did_it:
                soon = explodes and cause.loss is not None and cause.loss.nonfinite < MIN_LEFT_ALONE
                if not soon or case.outcome != "running":
                    yield _unknown_operation(learning, cause)
        steep, scaler = learning.steep, learning.scaler
        if steep is None or scaler is None or learning.births:
            continue
        if learning.steps - steep.step <= MAX_STEPS_AGO and has_collapsed(scaler):
            yield _skipped_steps(learning, steep, scaler)


def _operation(learning: Learning, cause: Cause, operation: Operation) -> Finding:
    birth = cause.birth
    samples = samples_of(birth, operation, operation.of) if operation.bad_rows <= len(operation.rows) else []
    return RULE.finding(
        severity=cause.severity,
        confidence=0.95 if cause.line else 0.85,
        title=_title(operation, cause.line, f" makes the loss {cause.value}"),
        evidence=(
            _elements(operation, birth.step),
            f"sample {listed(samples)} of the dataset" if samples else "",
            cause.toll(),
        ),
        where=where(learning, cause.site, step=birth.step, sample=samples[0] if samples else None),
        fix=fix_of(operation),
        also=(where(learning, birth.site, step=birth.step),) if cause.line else (),
    )


def _title(operation: Operation, site: Site | None, result: str) -> str:
    at = f" ({line(site)})" if site else ""
    if operation.backward:
        return f"NaN gradient: {reason(operation)}{at}"
    return f"{reason(operation)}{at}{result}"


def _elements(operation: Operation, step: int) -> str:
    rows = f", in row {listed(operation.rows, operation.bad_rows)}" if operation.rows else ""
    count = f": {operation.count:,} of {operation.of:,} elements{rows}" if operation.of else ""
    if operation.backward:
        return (
            f"`{operation.operation}` at step {operation.step:,}, {reason(operation)}{count}; the loss of that step is "
            f"finite, its gradient is NaN, and at step {step:,} so are the parameters"
        )
    layer = f" after {operation.layer}" if operation.layer else ""
    value = f" (input: {operation.example})" if operation.example else ""
    return f"`{operation.operation}`{layer} at step {step:,}, {reason(operation)}{value}{count}"


def _skipped_steps(learning: Learning, steep: Operation, scaler: Scaler) -> Finding:
    """A GradScaler skips step after step, because an operation has an infinite slope."""
    called = loss_site(learning)
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=_title(steep, steep.site, ""),
        evidence=(
            f"`{steep.operation}` at step {steep.step:,}, {reason(steep)}: the loss is finite, its gradient is not",
            f"so the GradScaler skips the steps: its scale fell from {scaler.first:,.6g} to {scaler.scale:.3g} in "
            f"{scaler.updates:,} updates",
        ),
        where=where(learning, steep.site or called, step=steep.step),
        fix=fix_of(steep),
        also=(where(learning, called),) if steep.site else (),
    )


def _unknown_operation(learning: Learning, cause: Cause) -> Finding:
    """That the loss is NaN is certain; which operation did it is not."""
    title, known = _what_is_known(cause)
    return RULE.finding(
        severity=cause.severity,
        confidence=0.55,
        title=title,
        evidence=(
            cause.toll(),
            known,
            "" if cause.birth.late else "neither a value in the data nor a single operation was found to cause it",
        ),
        where=where(learning, cause.site, step=cause.birth.step),
        fix=TRACE_FIX if cause.birth.late else GENERAL_FIX,
    )


def _what_is_known(cause: Cause) -> tuple[str, str]:
    """A title, and a line of evidence."""
    birth, part = cause.birth, cause.part
    if cause.kind == "gradient":
        names = ", ".join(parameter.name or str(parameter.shape) for parameter in birth.broken_parameters[:4])
        if birth.late:
            known = f"by the time this was read from the GPU, the parameters were NaN too: {names}"
            return f"The loss is {cause.value} from step {birth.since:,} on", known
        known = f"the parameters are NaN before this loss is computed, though the loss before was finite: {names}"
        return f"The gradient of the step before {birth.step:,} was NaN", known
    if isinstance(part, GrownWeight):
        known = f"the norm of {part.name or 'a weight'} grew from {part.before:,.4g} to {part.now:,.4g}"
        return f"The weights grew until the loss is {cause.value} at step {birth.step:,}", known
    oldest = (
        f"the oldest NaN result: `{part.operation}` after {part.layer or '?'}" if isinstance(part, Operation) else ""
    )
    if part is None and birth.outside:
        oldest = (
            f"`{birth.outside[0].operation}` gets a tensor of shape {birth.outside[0].shape} with NaN in it, computed "
            "outside of the graph"
        )
    return f"The loss is {cause.value} from step {birth.step:,} on", oldest


RULE = Rule(
    "nonfinite-born",
    "numerics",
    decide,
    explains=frozenset(("loss-scale-collapsed", "loss-oscillates", "dead-units", "uncaught-exception")),
    gathers=True,
)
