"""nonfinite-born: an operation of the model or of the loss was given numbers and gave NaN or infinity.

What it sees
    The loss became NaN or infinite. In the graph of that very loss the oldest operation whose input is finite and
    whose result is not: the logarithm of 0, a division by 0, an exponential too large, a root of a negative number, a
    softmax over a row that is masked everywhere, a standard deviation of one value. Or the loss is finite and its
    gradient is not: the slope of a root at 0.

Why training stops
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
from unstuck.rules.learning.measured import Learning, learnings
from unstuck.rules.numerics.broken import Origin, line, listed, origins
from unstuck.rules.numerics.exploding import exploded, largest_update
from unstuck.rules.numerics.loss_scale_collapsed import collapsed
from unstuck.rules.rule import Rule

RECENT = 2
"""Steps between the last look at an operation and the last step."""
FIXES = (
    ("a single number", "Look at how this number is computed: it is no number before it meets the model's output."),
    ("log", "Take `log_softmax`/`logsigmoid` of the scores instead of the log of a probability, or `.clamp_min(1e-8)` "
            "in front of the log."),
    ("division by 0", "Add a small number to the divisor (`/ (d + 1e-8)`) or clamp it (`d.clamp_min(1e-8)`)."),
    ("exp", "Subtract the maximum first (`logsumexp`, `softmax`), or clamp what goes into the exponential."),
    ("the slope of", "Keep the argument away from the edge: `sqrt(x + 1e-8)`, `clamp(-1 + 1e-6, 1 - 1e-6)`."),
    ("root", "Clamp the argument: `sqrt(x.clamp_min(1e-8))`."),
    ("1/root", "Add a small number: `rsqrt(x + 1e-8)`."),
    ("softmax of a row", "Leave at least one element of each row unmasked, or set the result of such rows to 0."),
    ("standard deviation", "A single value has no spread: use `correction=0`, or leave out groups of one."),
    ("variance", "A single value has no spread: use `correction=0`, or leave out groups of one."),
    ("mean of nothing", "Guard the empty selection: add nothing to the loss where it selects no element."),
    ("power", "Clamp the base of the power, and add a small number where the exponent is below 1."),
    ("overflow of half", "Run this part in float32 (`with torch.autocast(..., enabled=False)`), or use bfloat16."),
)  # fmt: skip


def decide(case: Case) -> Iterable[Finding]:
    for learning in learnings(case):
        for origin in origins(learning, case):
            if origin.kind == "operation":
                yield _finding(learning, origin)
            elif origin.kind in ("growth", "gradient", "unknown") and not _explained(learning, case):
                yield _unplaced(learning, origin)
        if not learning.births and _skipped(learning):
            yield _steep(learning)


def _skipped(learning: Learning) -> bool:
    """A loss scaler leaves out step after step, and to this day an operation has a slope that is no number."""
    return bool(learning.steep) and learning.steps - learning.steep["step"] <= RECENT and collapsed(learning.scaler)


def _steep(learning: Learning) -> Finding:
    about, scaler = learning.steep, learning.scaler
    site = (about["site"][0], about["site"][1], about["site"][2]) if about.get("site") else None
    called = learning.loss.site if learning.loss is not None else None
    at = f" ({line(site)})" if site else ""
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity="error",
        confidence=0.93,
        title=f"A gradient is no number: {about['where']}{at}",
        evidence=(
            f"`{about['operation']}` at step {about['step']:,}, {about['where']}: the loss is a number, its gradient "
            "is not",
            f"so the loss scaler leaves out the steps: its scale fell from {scaler['first']:,.6g} to "
            f"{scaler['scale']:.3g} in {scaler['updates']:,} updates",
        ),
        where=learning.where(site or called, step=int(about["step"])),
        fix=Fix(next((fix for word, fix in FIXES if about["where"].startswith(word)), _GENERAL)),
        seen_by="flight",
        also=(learning.where(called),) if site else (),
    )


def _explained(learning: Learning, case: Case) -> bool:
    """Gradients or the rate did it: then no operation is to blame."""
    return exploded(learning, case) is not None or largest_update(learning) > 1


def _finding(learning: Learning, origin: Origin) -> Finding:
    about = origin.about
    place = line(origin.site) if about.get("site") else ""
    layer = f" behind {about['layer']}" if about.get("layer") else ""
    value = f", given {about['example']}" if about.get("example") else ""
    rows = f", in row {listed(about['rows'], about.get('bad_rows', 0))}" if about.get("rows") else ""
    count = f": {about['count']:,} of {about['of']:,} elements{rows}" if "count" in about else ""
    evidence = [f"`{about['operation']}`{layer} at step {origin.step:,}, {about['where']}{value}{count}"]
    if about.get("backward"):
        evidence[0] = (
            f"`{about['operation']}` at step {about['step']:,}, {about['where']}{count}: the loss of that step was a "
            f"number, its gradient was not, and at step {origin.step:,} the parameters are none"
        )
    samples = _samples(origin)
    if samples:
        evidence.append(f"sample {listed(samples)} of the data set")
    evidence.append(origin.toll())
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity=origin.severity,
        confidence=0.95 if about.get("site") else 0.85,
        title=_title(origin, place),
        evidence=tuple(evidence),
        where=learning.where(origin.site, step=origin.step, sample=samples[0] if samples else None),
        fix=Fix(next((fix for word, fix in FIXES if about["where"].startswith(word)), _GENERAL)),
        seen_by="flight",
        also=(learning.where(origin.called, step=origin.step),) if about.get("site") else (),
    )


def _title(origin: Origin, place: str) -> str:
    at = f" ({place})" if place else ""
    if origin.about.get("backward"):
        return f"A gradient is no number: {origin.about['where']}{at}"
    why = origin.about["where"]
    return f"{why[:1].upper()}{why[1:]}{at} makes the loss {origin.birth['value']}"


def _unplaced(learning: Learning, origin: Origin) -> Finding:
    """That it broke is certain; which operation did it is not."""
    evidence = [origin.toll()]
    late = bool(origin.birth.get("late"))
    if origin.kind == "gradient" and late:
        names = _names(origin)
        evidence.append(f"by the time this was read from the GPU the parameters were no numbers either: {names}")
        title = f"The loss is {origin.birth['value']} from step {origin.birth['since']:,} on"
    elif origin.kind == "gradient":
        names = _names(origin)
        evidence.append(f"the parameters are no numbers already when this loss is computed: {names}")
        evidence.append("so the gradient of the step before was none, though its loss was a number")
        title = f"The gradient of the step before {origin.step:,} was no number"
    elif origin.kind == "growth":
        about = origin.about
        evidence.append(f"{about['name'] or 'a weight'} grew from norm {about['before']:,.4g} to {about['now']:,.4g}")
        title = f"The weights grew until the loss is {origin.birth['value']} at step {origin.step:,}"
    else:
        first = origin.about.get("operation")
        if first:
            evidence.append(f"the oldest result that is no number: `{first}` behind {origin.about.get('layer') or '?'}")
        title = f"The loss is {origin.birth['value']} from step {origin.step:,} on"
    if not late:
        evidence.append("no value of the data and no single operation was found that did it")
    return Finding(
        rule=RULE.name,
        family=RULE.family,
        severity=origin.severity,
        confidence=0.55,
        title=title,
        evidence=tuple(evidence),
        where=learning.where(origin.site, step=origin.step),
        fix=Fix(_LATE if late else _GENERAL),
        seen_by="flight",
    )


def _names(origin: Origin) -> str:
    return ", ".join(each["name"] or str(each["shape"]) for each in origin.about["parameters"][:4])


def _samples(origin: Origin) -> list[int]:
    """Of the data set, where the rows of the operation are those of the batch."""
    about = origin.about
    for batch in origin.birth.get("batch") or ():
        indices, rows = batch.get("indices"), about.get("rows") or []
        if indices and rows and about.get("bad_rows", 0) <= len(rows) and about.get("of") == batch["size"]:
            return [indices[row] for row in rows if row < len(indices)]
    return []


_GENERAL = (
    "Run the script once with `torch.autograd.set_detect_anomaly(True)`: it stops in the operation whose gradient is "
    "no number."
)

_LATE = (
    "Run it once more with `unstuck run --trace-nan`: it waits for each loss, and names the operation while its graph "
    "is there."
)

RULE = Rule(
    "nonfinite-born",
    "numerics",
    decide,
    explains=frozenset(("loss-scale-collapsed", "loss-oscillates", "no-better-than-constant", "dead-units")),
    gathers=True,
)
