"""loader-exhausted: after the first pass the loader gives nothing more.

What it sees
    A loader that has given batches in an earlier pass ends at once in a later one.

Why it matters
    Every further epoch is empty. A script that counts epochs finishes early with a fraction of the training; one that
    counts steps goes round for ever without making any.

Evidence
    How many passes gave batches, how many since gave none, and after which step the training stood.

Fix
    The data set keeps a generator, an open file or a position that is used up after one pass: make it anew in
    `__iter__`. Or the iterator itself was made once, before the epochs (`zip(a, b)`, `iter(loader)`): make it in them.

When it is wrong
    A stream that is meant to be read once, and is asked once more only to see that it is empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import LoaderState
from unstuck.rules.loader_reports import latest
from unstuck.rules.rule import Rule

AGAIN = 2
"""Times an iterator was asked after its end; once is how a loop notices that it must be made anew."""


def decide(case: Case) -> Iterable[Finding]:
    yield from _iterators(case)
    for about in latest(case, case.empty_passes):
        state, what = about.state, about.dataset
        if not state.full_passes:
            continue
        times = "a pass" if state.empty == 1 else f"{state.empty:,} passes"
        given = "one pass" if state.full_passes == 1 else f"{state.full_passes:,} passes"
        yield RULE.finding(
            severity="error" if state.empty > 1 else "warning",
            confidence=0.97 if state.empty > 1 else 0.8,
            title=f"{what} is used up after {given}: every further pass is empty",
            evidence=(
                f"{given} over the loader at {about.line} gave batches, and then {times} in a row gave none",
                f"the training stands at step {state.step:,}",
            ),
            where=about.where(about.settings.dataset_site, about.settings.sampler_site),
            fix=Fix(
                f"Begin anew in {what}.__iter__: make the generator, open the file or set the position there, not in "
                f"__init__."
                if state.iterable
                else "Let the sampler's __iter__ begin anew each time it is called."
            ),
            seen_by="flight",
            also=(about.where(),),
        )


def _iterators(case: Case) -> Iterable[Finding]:
    """`pairs = zip(a, b)` or `it = iter(loader)`, made before the epochs: it has ended and is asked again and again."""
    others: tuple[LoaderState, ...] = (*case.passes_ended, *case.empty_passes, *case.over_length, *case.repeats)
    passes = {(each.pid, each.number): each.passes for each in sorted(others, key=lambda each: each.passes)}
    for about in latest(case, case.asked_after_end):
        state = about.state
        if state.again < AGAIN or passes.get((state.pid, state.number), 0) > state.passes:
            continue
        yield RULE.finding(
            severity="error",
            confidence=0.95,
            title=f"the iterator made at {about.line} is used up: every further epoch gets nothing from it",
            evidence=(
                f"its one pass came to an end, and it was asked {state.again:,} more times without being made anew",
                f"the training stands at step {state.step:,}",
            ),
            where=about.where(),
            fix=Fix("Make the iterator (`iter(loader)`, `zip(…)`) inside the loop over the epochs, not before it."),
            seen_by="flight",
        )
        break  # of loaders drawn together one tells it


RULE = Rule("loader-exhausted", "loop", decide, explains=frozenset(("stop-condition-never-met", "endless-epoch")))
