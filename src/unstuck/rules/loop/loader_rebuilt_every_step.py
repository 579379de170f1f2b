"""loader-rebuilt-every-step: a new iterator over the loader is made for every step.

What it sees
    Passes over a loader are begun about once a step and left after their first batch.

Why it matters
    It crawls: each new iterator starts its workers, shuffles all indices and waits for a first batch.

Evidence
    How many passes were begun for how many steps, and the share of the time that beginning them took.

Fix
    Make the iterator once, before the loop.

When it is wrong
    A batch drawn now and then (every fifty steps, for a picture in the log) is not meant. Where beginning a pass costs
    next to nothing it is information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule
from unstuck.rules.words import seconds

ENOUGH = 16
COSTLY = 0.1
"""Share of the time from which on it is a warning."""


def decide(case: Case) -> Iterable[Finding]:
    for about in latest(case, case.short_passes):
        state = about.state
        if state.short < ENOUGH or state.length == 1:
            continue
        share = state.opening / state.since_first if state.since_first else 0.0
        each = state.opening / max(state.passes, 1)
        anew = f"{state.loaders:,} DataLoaders were made and " if state.loaders > 2 else ""
        workers = f", its {state.workers} workers included" if state.workers else ""
        yield RULE.finding(
            severity="warning" if share >= COSTLY else "info",
            confidence=0.95,
            title=f"{about.line} starts the loader anew for every step"
            + (f": {share:.0%} of the time goes into it" if share >= COSTLY else ""),
            evidence=(
                f"{anew}{state.passes:,} passes were begun at {about.line} for {state.step:,} training steps; "
                f"the last {state.short:,} were left after one batch",
                f"beginning one takes {seconds(each)}{workers}: {seconds(state.opening)} of "
                f"{seconds(state.since_first)} so far",
            ),
            where=about.where(),
            fix=Fix(
                "Make the iterator once before the loop (`it = iter(loader)`, then `next(it)`), or write `for batch "
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
