"""loader-rebuilt-every-step: a new iterator over the loader is created for every step.

What it sees
    Passes over a loader begin about once per step and are abandoned after their first batch.

Why it matters
    The training crawls: each new iterator starts its workers, shuffles all indices and waits for a first batch.

Evidence
    How many passes began for how many steps, and the share of the time that starting them took.

Fix
    Create the iterator once, before the loop.

When it is wrong
    A batch drawn now and then (every fifty steps, for a picture in the log) is not meant. Where starting a pass costs
    next to nothing it is information only. Where a library begins the passes (Lightning's `overfit_batches=1`), that
    is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

MIN_SHORT_PASSES = 16  # in a row
COSTLY_SHARE = 0.1  # of the time: from here on it is a warning


def decide(case: Case) -> Iterable[Finding]:
    for report in latest(case, case.short_passes):
        state = report.state
        if state.short < MIN_SHORT_PASSES or state.length == 1 or state.library:
            continue
        share = state.opening / state.since_first if state.since_first else 0.0
        costly = share >= COSTLY_SHARE
        loaders = f"{state.loaders:,} DataLoaders were created and " if state.loaders > 2 else ""
        workers = f", including its {state.workers} workers" if state.workers else ""
        yield RULE.finding(
            severity="warning" if costly else "info",
            confidence=0.95,
            title=f"{report.line} restarts the loader for every step"
            + (f": {share:.0%} of the time goes into it" if costly else ""),
            evidence=(
                f"{loaders}{state.passes:,} passes began at {report.line} for {state.step:,} training steps; "
                f"the last {state.short:,} were abandoned after one batch",
                f"starting one takes {seconds(state.opening / max(state.passes, 1))}{workers}: "
                f"{seconds(state.opening)} of {seconds(state.since_first)} so far",
            ),
            where=report.where(),
            fix=Fix(
                "Create the iterator once before the loop (`it = iter(loader)`, then `next(it)`), or write `for batch "
                "in loader`."
            ),
            seen_by="flight",
        )


RULE = Rule(
    "loader-rebuilt-every-step",
    "loop",
    decide,
    explains=frozenset(("workers-restart-every-epoch", "dataset-copied-to-workers", "starved-for-data")),
)
