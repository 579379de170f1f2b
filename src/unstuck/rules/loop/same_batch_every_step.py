"""same-batch-every-step: every step trains on the same batch.

What it sees
    The contents of the batches that the loader gives are identical step after step, although the loader has more than
    one batch: usually `next(iter(loader))`, which begins a new pass each time and takes its first batch.

Why training stops
    It does not stop, but it learns one batch by heart: the loss falls, and everything else stays as bad as it was.

Evidence
    How many batches in a row had the same contents (bytes of up to 16 of their samples), and how many passes over the
    loader were begun for them.

Fix
    Make the iterator once, before the loop, or write `for batch in loader`.

When it is wrong
    Overfitting one batch on purpose is usually done with a batch kept in a variable, which is not seen here, or with a
    data set of one batch, which is not reported. Made-up data that is the same for every index is information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.loop.loaders import Told, told
from unstuck.rules.rule import Rule

ENOUGH = 7
"""Identical batches after the first."""


def decide(case: Case) -> Iterable[Finding]:
    for about in told(case, "same-batch"):
        if about["same"] < ENOUGH or about["length"] == 1 or not about["step"]:
            continue
        rebuilt = about["short"] >= about["same"] - 1
        if not rebuilt and about["passes"] > 1 and about["batches"] <= about["same"]:
            continue  # the first batch of many passes: drawn now and then, to look at
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="error" if rebuilt else "info",
            confidence=0.95 if rebuilt else 0.7,
            title=f"{about['same'] + 1} batches in a row had the same contents",
            evidence=_evidence(about, rebuilt),
            where=about.where() if rebuilt else about.where("dataset_site"),
            fix=Fix(
                f"Make the iterator once before the loop (`it = iter(loader)`, then `next(it)`), or write `for batch "
                f"in loader`: {about.line} begins a new pass each time and takes its first batch."
                if rebuilt
                else "If that is not meant so, look at what the data set does with the index it is given."
            ),
            seen_by="flight",
        )


def _evidence(about: Told, rebuilt: bool) -> tuple[str, ...]:
    length = f", though a pass has {about['length']:,}" if about["length"] else ""
    first = f"the last {about['same'] + 1} batches of {about.name} were byte for byte the same{length}"
    if not rebuilt:
        return (first, "they came from one pass: the data set gives the same for every index")
    return (
        first,
        f"{about['passes']:,} passes over it were begun at {about.line}, for {about['step']:,} training steps",
    )


RULE = Rule("same-batch-every-step", "loop", decide, explains=frozenset(("loader-rebuilt-every-step",)))
