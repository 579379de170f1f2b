"""nonfinite-born: an operation of the model or of the loss was given numbers and gave NaN or infinity.

What it sees
    The loss became NaN or infinite. In the graph of that very loss the oldest operation whose input is finite and
    whose result is not: the logarithm of 0, a division by 0, an exponential too large, a root of a negative number, a
    softmax over a row that is masked everywhere, a standard deviation of one value. Or the loss is finite and its
    gradient is not: the slope of a root at 0.

Why it matters
    The gradient of such a loss is NaN, and with the next update every parameter is. All later losses are NaN.

Evidence
    The operation, what it was given, in which rows, behind which layer, its line in the script, and the step.

Fix
    Use the form that cannot overflow (`log_softmax`, `logsumexp`, `binary_cross_entropy_with_logits`), or keep the
    input away from the edge (`clamp_min(1e-8)`, `sqrt(x + eps)`).

When it is wrong
    Parameters that were broken by a far too large update are reported as such (exploding-gradient), not here. Where
    activations are recomputed (checkpointing) or compiled, the graph does not tell the operation. On a GPU a loss is
    read some steps late, so as not to wait for it: then the step is exact and the operation is not known without
    `--trace-nan`.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records import Site
from unstuck.recorder.records.learning import Learning
from unstuck.recorder.records.numerics import GrownWeight, Operation, Scaler
from unstuck.rules.learning.measured import loss_site, where
from unstuck.rules.learning.ownership import line
from unstuck.rules.numerics.broken import Origin, collapsed, listed, origins, samples_of
from unstuck.rules.numerics.exploding import exploded, largest_update
from unstuck.rules.numerics.reasons import GENERAL, fix, reason
from unstuck.rules.rule import Rule

RECENT = 2
"""Steps between the last look at an operation and the last step."""
LATE = (
    "Run it once more with `unstuck run --trace-nan`: it waits for each loss, and names the operation while its graph "
    "is there."
)


def decide(case: Case) -> Iterable[Finding]:
    for learning in case.learnings:
        for origin in origins(learning, case):
            if origin.kind == "operation" and isinstance(origin.part, Operation):
                yield _finding(learning, origin, origin.part)
            elif origin.kind in ("growth", "gradient", "unknown") and not _explained(learning, case):
                yield _unplaced(learning, origin)
        steep, scaler = learning.steep, learning.scaler
        if steep is None or scaler is None or learning.births:
            continue
        if learning.steps - steep.step <= RECENT and collapsed(scaler):
            yield _skipped(learning, steep, scaler)


def _explained(learning: Learning, case: Case) -> bool:
    """Gradients or the rate did it: then no operation is to blame."""
    return exploded(learning, case) is not None or largest_update(learning) > 1


def _skipped(learning: Learning, steep: Operation, scaler: Scaler) -> Finding:
    """A loss scaler leaves out step after step, and to this day an operation has a slope that is no number."""
    called = loss_site(learning)
    return RULE.finding(
        severity="error",
        confidence=0.93,
        title=_title(steep, steep.site, ""),
        evidence=(
            f"`{steep.operation}` at step {steep.step:,}, {reason(steep)}: the loss is a number, its gradient is not",
            f"so the loss scaler leaves out the steps: its scale fell from {scaler.first:,.6g} to {scaler.scale:.3g} "
            f"in {scaler.updates:,} updates",
        ),
        where=where(learning, steep.site or called, step=steep.step),
        fix=Fix(fix(steep)),
        seen_by="flight",
        also=(where(learning, called),) if steep.site else (),
    )


def _finding(learning: Learning, origin: Origin, done: Operation) -> Finding:
    birth = origin.birth
    evidence = [_done(done, birth.step)]
    samples = samples_of(birth, done, done.of) if done.bad_rows <= len(done.rows) else []
    if samples:
        evidence.append(f"sample {listed(samples)} of the data set")
    evidence.append(origin.toll())
    return RULE.finding(
        severity=origin.severity,
        confidence=0.95 if origin.line else 0.85,
        title=_title(done, origin.line, f" makes the loss {birth.value}"),
        evidence=tuple(evidence),
        where=where(learning, origin.site, step=birth.step, sample=samples[0] if samples else None),
        fix=Fix(fix(done)),
        seen_by="flight",
        also=(where(learning, birth.site, step=birth.step),) if origin.line else (),
    )


def _title(done: Operation, site: Site | None, result: str) -> str:
    why, at = reason(done), f" ({line(site)})" if site else ""
    return f"A gradient is no number: {why}{at}" if done.backward else f"{why[:1].upper()}{why[1:]}{at}{result}"


def _done(done: Operation, step: int) -> str:
    """What it did, to which elements."""
    rows = f", in row {listed(done.rows, done.bad_rows)}" if done.rows else ""
    count = f": {done.count:,} of {done.of:,} elements{rows}" if done.of else ""
    if done.backward:
        return (
            f"`{done.operation}` at step {done.step:,}, {reason(done)}{count}: the loss of that step was a number, its "
            f"gradient was not, and at step {step:,} the parameters are none"
        )
    layer = f" behind {done.layer}" if done.layer else ""
    value = f", given {done.example}" if done.example else ""
    return f"`{done.operation}`{layer} at step {step:,}, {reason(done)}{value}{count}"


def _unplaced(learning: Learning, origin: Origin) -> Finding:
    """That it broke is certain; which operation did it is not."""
    title, known = _broken_by(origin)
    unknown = () if origin.birth.late else ("no value of the data and no single operation was found that did it",)
    return RULE.finding(
        severity=origin.severity,
        confidence=0.55,
        title=title,
        evidence=(origin.toll(), *known, *unknown),
        where=where(learning, origin.site, step=origin.birth.step),
        fix=Fix(LATE if origin.birth.late else GENERAL),
        seen_by="flight",
    )


def _broken_by(origin: Origin) -> tuple[str, list[str]]:
    """A title, and what is known."""
    birth, part = origin.birth, origin.part
    if origin.kind == "gradient":
        names = ", ".join(each.name or str(each.shape) for each in birth.broken_parameters[:4])
        if birth.late:
            return f"The loss is {birth.value} from step {birth.since:,} on", [
                f"by the time this was read from the GPU the parameters were no numbers either: {names}"
            ]
        return f"The gradient of the step before {birth.step:,} was no number", [
            f"the parameters are no numbers already when this loss is computed: {names}",
            "so the gradient of the step before was none, though its loss was a number",
        ]
    if isinstance(part, GrownWeight):
        return f"The weights grew until the loss is {birth.value} at step {birth.step:,}", [
            f"{part.name or 'a weight'} grew from norm {part.before:,.4g} to {part.now:,.4g}"
        ]
    known = []
    if isinstance(part, Operation):
        known = [f"the oldest result that is no number: `{part.operation}` behind {part.layer or '?'}"]
    return f"The loss is {birth.value} from step {birth.step:,} on", known


RULE = Rule(
    "nonfinite-born",
    "numerics",
    decide,
    explains=frozenset(("loss-scale-collapsed", "loss-oscillates", "no-better-than-constant", "dead-units")),
    gathers=True,
)
