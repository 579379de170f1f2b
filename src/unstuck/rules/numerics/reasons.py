"""Why an operation gave something that is no number, in words, and what to do about it."""

from __future__ import annotations

from unstuck.recorder.records.numerics import Operation, Why

GENERAL = (
    "Run the script once with `torch.autograd.set_detect_anomaly(True)`: it stops in the operation whose gradient is "
    "no number."
)
_LOG = (
    "Take `log_softmax`/`logsigmoid` of the scores instead of the log of a probability, or `.clamp_min(1e-8)` in front "
    "of the log."
)
_EDGE = "Keep the argument away from the edge: `sqrt(x + 1e-8)`, `clamp(-1 + 1e-6, 1 - 1e-6)`."
_ROOT = "Clamp the argument: `sqrt(x.clamp_min(1e-8))`."
REASONS: dict[Why, tuple[str, str]] = {
    "log-of-zero": ("{operation} of {zero}", _LOG),
    "log-of-negative": ("{operation} of a negative number", _LOG),
    "beyond-one": ("{operation} of a number beyond ±1", GENERAL),
    "division-by-zero": (
        "division by 0",
        "Add a small number to the divisor (`/ (d + 1e-8)`) or clamp it (`d.clamp_min(1e-8)`).",
    ),
    "spread-of-too-few": (
        "{spread} {detail}",
        "A single value has no spread: use `correction=0`, or leave out groups of one.",
    ),
    "row-masked": (
        "softmax of a row that is masked everywhere",
        "Leave at least one element of each row unmasked, or set the result of such rows to 0.",
    ),
    "power": ("{detail}", "Clamp the base of the power, and add a small number where the exponent is below 1."),
    "exp-overflow": (
        "exp of a number too large",
        "Subtract the maximum first (`logsumexp`, `softmax`), or clamp what goes into the exponential.",
    ),
    "root-of-negative": ("root of a negative number", _ROOT),
    "root-overflow": ("root of a number too large", _ROOT),
    "reciprocal-root-of-zero": ("1/root of 0", "Add a small number: `rsqrt(x + 1e-8)`."),
    "labels-ignored": ("every label is {detail}", GENERAL),
    "mean-of-nothing": (
        "mean of nothing",
        "Guard the empty selection: add nothing to the loss where it selects no element.",
    ),
    "result": ("its result", GENERAL),
    "computed": ("the value computed for `{detail}`", GENERAL),
    "half-precision": (
        "overflow of half precision (nothing above 65,504)",
        "Run this part in float32 (`with torch.autocast(..., enabled=False)`), or use bfloat16.",
    ),
    "number-given": (
        "a single number that is {detail}, given to `{operation}`",
        "Look at how this number is computed: it is no number before it meets the model's output.",
    ),
    "slope-of-root": ("the slope of a root at 0 is infinite", _EDGE),
    "slope-of-power": ("the slope of {detail} at 0 is infinite", _EDGE),
    "slope-at-one": ("the slope of {operation} at ±1 is infinite", _EDGE),
}


def reason(done: Operation) -> str:
    words, _ = REASONS[done.why]
    log1p = done.operation == "log1_p"
    text = words.format(
        operation="log1p" if log1p else done.operation,
        zero="-1" if log1p else "0",
        spread="standard deviation" if done.operation == "std" else "variance",
        detail=done.detail,
    )
    return f"{text}, in a part that is masked out afterwards" if done.masked_out else text


def fix(done: Operation) -> str:
    return REASONS[done.why][1]
