"""same-batch-every-step: every step trains on the same batch.

What it sees
    The contents of the batches that the loader gives are identical step after step, although the loader has more than
    one batch: usually `next(iter(loader))`, which begins a new pass each time and takes its first batch.

Why it matters
    It does not stop, but it learns one batch by heart: the loss falls, and everything else stays as bad as it was.

Evidence
    How many batches that were compared had the same contents (bytes of up to 8 of their samples), whether they followed
    each other, and how many passes over the loader were begun for them. Every batch is compared in the first steps and
    at the beginning of a pass, later about one in thirty-two.

Fix
    Make the iterator once, before the loop, or write `for batch in loader`.

When it is wrong
    Overfitting one batch on purpose is usually done with a batch kept in a variable, which is not seen here, or with a
    data set of one batch, which is not reported. Made-up data that is the same for every index is information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import SameBatch
from unstuck.rules.loader_reports import LoaderReport, latest
from unstuck.rules.rule import Rule

ENOUGH = 7
"""Identical batches after the first."""


def decide(case: Case) -> Iterable[Finding]:
    for about in latest(case, case.same_batches):
        state = about.state
        if state.same < ENOUGH or state.length == 1 or not state.step:
            continue
        rebuilt = state.short >= state.same - 1
        if not rebuilt and state.passes > 1 and state.batches <= state.same:
            continue  # the first batch of many passes: drawn now and then, to look at
        yield RULE.finding(
            severity="error" if rebuilt else "info",
            confidence=0.95 if rebuilt else 0.7,
            title=f"{state.same + 1} batches {'in a row' if state.apart == 1 else 'that were compared'} had the same "
            "contents",
            evidence=_evidence(about, rebuilt),
            where=about.where() if rebuilt else about.where(about.settings.dataset_site),
            fix=Fix(_fix(about, rebuilt)),
            seen_by="flight",
        )


def _evidence(about: LoaderReport[SameBatch], rebuilt: bool) -> tuple[str, ...]:
    state = about.state
    length = f", though a pass has {state.length:,}" if state.length else ""
    which = "batches" if state.apart == 1 else "compared batches"
    first = f"the last {state.same + 1} {which} of {about.name} were byte for byte the same{length}"
    if rebuilt:
        return (
            first,
            f"{state.passes:,} passes over it were begun at {about.line}, for {state.step:,} training steps",
        )
    if state.apart > 1:
        return (first, f"up to {state.apart} batches lie from one to the next: those between were not compared")
    return (first, "they came from one pass: the data set gives the same for every index")


def _fix(about: LoaderReport[SameBatch], rebuilt: bool) -> str:
    if rebuilt:
        return (
            "Make the iterator once before the loop (`it = iter(loader)`, then `next(it)`), or write `for batch in "
            f"loader`: {about.line} begins a new pass each time and takes its first batch."
        )
    if about.state.apart > 1:
        return "If that is not meant so, look whether the data comes round again, or is the same for every index."
    return "If that is not meant so, look at what the data set does with the index it is given."


RULE = Rule("same-batch-every-step", "loop", decide, explains=frozenset(("loader-rebuilt-every-step",)))
