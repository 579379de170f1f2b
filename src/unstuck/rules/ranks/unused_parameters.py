"""unused-parameters: DistributedDataParallel waits for gradients of parameters that the loss does not reach.

What it sees
    The forward pass of DistributedDataParallel refuses to go on, because the backward pass before it did not give every
    parameter a gradient.

Why it matters
    Gradients are averaged in buckets, as they come. A bucket with a parameter that gets none is never complete, so the
    average of the whole step is never finished, and the next step dies of it.

Evidence
    The names of the parameters without a gradient, and the step.

Fix
    Use every parameter in the loss, freeze those that are not needed (`requires_grad_(False)`), or pass
    `find_unused_parameters=True`.

When it is wrong
    Never seen: only this check of DistributedDataParallel raises there.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix, Where
from unstuck.rules.rule import Rule
from unstuck.text import count, listed


def decide(case: Case) -> Iterable[Finding]:
    refused = next(iter(case.reductions_unfinished), None)
    if refused is None or case.outcome == "finished":
        return
    names, flight = refused.names, case.flight_of(refused.pid)
    who = f"{count(len(names), 'parameter')} ({listed(names, shown=3)})" if names else "some parameters"
    file, line, function = refused.site or (None, None, None)
    yield RULE.finding(
        severity="error",
        confidence=0.97 if names else 0.9,
        title=f"{who} got no gradient, so DistributedDataParallel refuses the next step",
        evidence=(
            f"without a gradient in the backward pass of step {refused.step}: {listed(names, shown=8)}"
            if names
            else "",
            f"`{refused.message.partition('.')[0]}`",
        ),
        where=Where(
            file,
            line,
            function or None,
            pid=refused.pid,
            rank=flight.rank if flight is not None else None,
            step=refused.step,
        ),
        fix=Fix(
            "Use these parameters in the loss, freeze them with requires_grad_(False) before the model is wrapped, or "
            "pass find_unused_parameters=True to DistributedDataParallel.",
            setting="unused parameters",
        ),
        seen_by="exit",
    )


RULE = Rule(
    "unused-parameters",
    "ranks",
    decide,
    explains=frozenset(
        (
            "uncaught-exception",
            "rank-exited-early",
            "rank-skips-collective",
            "waits-on-rank",
            "frozen-parameters",
            "native-crash",
        )
    ),
)
