"""loader-exhausted: after the first pass the loader gives nothing more.

What it sees
    A loader that has given batches in an earlier pass ends at once in a later one.

Why it matters
    Every further epoch is empty. A script that counts epochs finishes early with a fraction of the training; one that
    counts steps loops forever without making any.

Evidence
    How many passes gave batches, how many since gave none, and at which step the training stopped.

Fix
    The dataset keeps a generator, an open file or a position that is used up after one pass: create it again in
    `__iter__`. Or the iterator itself was created once, before the epochs (`zip(a, b)`, `iter(loader)`): create it
    inside the loop over the epochs.

When it is wrong
    A stream that should be read once, where the script tries once more only to see that it is empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import LoaderState
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule

MIN_CALLS_AFTER_END = 2  # of the iterator; one is how a loop notices that it must create a new one


def decide(case: Case) -> Iterable[Finding]:
    yield from _iterators(case)
    for report in latest(case, case.empty_passes):
        state, dataset = report.state, report.dataset
        if not state.full_passes:
            continue
        empty = "a pass" if state.empty == 1 else f"{state.empty:,} passes"
        full = "one pass" if state.full_passes == 1 else f"{state.full_passes:,} passes"
        yield RULE.finding(
            severity="error" if state.empty > 1 else "warning",
            confidence=0.97 if state.empty > 1 else 0.8,
            title=f"{dataset} is used up after {full}: every further pass is empty",
            evidence=(
                f"{full} over the loader at {report.line} gave batches, and then {empty} in a row gave none",
                f"the training is at step {state.step:,}",
            ),
            where=report.where(report.settings.dataset_site, report.settings.sampler_site),
            fix=Fix(
                f"Start over in {dataset}.__iter__: create the generator, open the file or set the position there, not "
                f"in __init__."
                if state.iterable
                else "Let the sampler's __iter__ start over each time it is called."
            ),
            seen_by="flight",
            also=(report.where(),),
        )


def _iterators(case: Case) -> Iterable[Finding]:
    """`pairs = zip(a, b)` or `it = iter(loader)`, created before the epochs: it has ended, and is used again and
    again."""
    others: tuple[LoaderState, ...] = (*case.passes_ended, *case.empty_passes, *case.over_length, *case.repeats)
    passes = {(each.pid, each.number): each.passes for each in sorted(others, key=lambda each: each.passes)}
    for report in latest(case, case.asked_after_end):
        state = report.state
        if state.again < MIN_CALLS_AFTER_END or passes.get((state.pid, state.number), 0) > state.passes:
            continue
        yield RULE.finding(
            severity="error",
            confidence=0.95,
            title=f"the iterator created at {report.line} is used up: every further epoch gets nothing from it",
            evidence=(
                f"its one pass ended, and next() was called on it {state.again:,} more times",
                f"the training is at step {state.step:,}",
            ),
            where=report.where(),
            fix=Fix("Create the iterator (`iter(loader)`, `zip(…)`) inside the loop over the epochs, not before it."),
            seen_by="flight",
        )
        return  # loaders that are drawn together end together: one finding is enough


RULE = Rule("loader-exhausted", "loop", decide, explains=frozenset(("stop-condition-never-met", "endless-epoch")))
