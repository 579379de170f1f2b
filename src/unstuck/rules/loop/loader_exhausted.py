"""loader-exhausted: after the first pass the loader gives nothing more.

What it sees
    A loader that has given batches in an earlier pass ends at once in a later one. Or, where a script makes its batches
    itself: a generator, `zip`, `map`, `csv.reader`, an open file or another iterator that can be gone through once is
    made before the epochs, and each epoch goes through the same one; also in a method of the object that keeps it.

Why it matters
    Every further epoch is empty. A script that counts epochs finishes early with a fraction of the training; one that
    counts steps loops forever without making any.

Evidence
    How many passes gave batches, how many since gave none, and at which step the training stopped. For an iterator of
    the script's own: its type, the loop over the epochs that holds it, that nothing in this loop makes a new one, and
    that nothing leaves the inner loop before the iterator's end, or that it is seen to be skipped.

Fix
    The dataset keeps a generator, an open file or a position that is used up after one pass: create it again in
    `__iter__`. Or the iterator itself was created once, before the epochs (`zip(a, b)`, `iter(loader)`): create it
    inside the loop over the epochs.

When it is wrong
    A stream that should be read once, where the script tries once more only to see that it is empty. An iterator of
    the script's own is reported only when the run has ended, has died in a later epoch, or goes round without making
    another step; at the end not where the loop over the epochs has a `break` or `return`, since it may have been left
    after the first; and not where a file it may read can be set back (`seek`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.loaders import LoaderState
from unstuck.rules.loader_reports import latest
from unstuck.rules.loop.used_up import UsedUp, used_up
from unstuck.rules.rule import Rule

MIN_CALLS_AFTER_END = 2  # of the iterator; one is how a loop notices that it must create a new one


def decide(case: Case) -> Iterable[Finding]:
    yield from _iterators(case)
    yield from map(_own, used_up(case))
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


def _own(found: UsedUp) -> Finding:
    inner, outer, held = found.inner, found.outer, found.held
    where = at = replace(inner.where(), step=found.step)
    if held.made is not None:
        where = replace(at, file=held.made[0], line=held.made[1], function=held.made[2])
    rounds = f"the first of {found.rounds:,} rounds" if found.rounds > 1 else "the first round"
    what = f"a {held.type}" if held.type[:1] not in "aeiou" else f"an {held.type}"
    return RULE.finding(
        severity="error",
        confidence=0.95,
        title=f"`{held.name}` is used up after {rounds} of `{outer.text}`: the others get nothing from it",
        evidence=(
            f"`{inner.text}` (line {inner.line}) goes through {what}, which can be gone through once"
            + ("" if inner.exits else ", and nothing leaves this loop before its last element"),
            f"the loop at line {outer.line} goes through the same one in every round: it holds it in `{held.name}`, "
            "and nothing in it makes a new one",
            f"the last training step was step {found.step:,}" + (f": {found.shown}" if found.shown else ""),
        ),
        where=where,
        fix=Fix(
            f"Make the iterator inside the loop at line {outer.line}, once for each round; or keep what it gives in a "
            "list before that loop, if it fits into memory"
            + (f"; or let {held.type}.__iter__ start over." if held.type[:1].isupper() else ".")
        ),
        seen_by="flight",
        also=(at,) if at != where else (),
    )


RULE = Rule(
    "loader-exhausted",
    "loop",
    decide,
    explains=frozenset(("stop-condition-never-met", "endless-epoch", "uncaught-exception", "main-spins")),
)
