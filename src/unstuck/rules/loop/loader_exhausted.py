"""loader-exhausted: after the first pass the loader gives nothing more.

What it sees
    A loader that has given batches in an earlier pass ends at once in a later one.

Why training stops
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
from unstuck.rules.loop.loaders import told
from unstuck.rules.rule import Rule

AGAIN = 2
"""Times an iterator was asked after its end; once is how a loop notices that it must be made anew."""
KINDS = ("pass", "empty-pass", "over-length", "repeats")


def decide(case: Case) -> Iterable[Finding]:
    yield from _iterators(case)
    for about in told(case, "empty-pass"):
        if not about["full_passes"]:
            continue
        times = "a pass" if about["empty"] == 1 else f"{about['empty']:,} passes"
        given = "one pass" if about["full_passes"] == 1 else f"{about['full_passes']:,} passes"
        what = about.settings.get("dataset") or "the data set"
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="error" if about["empty"] > 1 else "warning",
            confidence=0.97 if about["empty"] > 1 else 0.8,
            title=f"{what} is used up after {given}: every further pass is empty",
            evidence=(
                f"{given} over the loader at {about.line} gave batches, and then {times} in a row gave none",
                f"the training stands at step {about['step']:,}",
            ),
            where=about.where("dataset_site", "sampler_site"),
            fix=Fix(
                f"Begin anew in {what}.__iter__: make the generator, open the file or set the position there, not in "
                f"__init__."
                if about["iterable"]
                else "Let the sampler's __iter__ begin anew each time it is called."
            ),
            seen_by="flight",
            also=(about.where(),),
        )


def _iterators(case: Case) -> Iterable[Finding]:
    """`pairs = zip(a, b)` or `it = iter(loader)`, made before the epochs: it has ended and is asked again and again."""
    passes = {about.fact.data["number"]: about["passes"] for kind in KINDS for about in told(case, kind)}
    for about in told(case, "asked-after-end"):
        if about["again"] < AGAIN or passes.get(about["number"], 0) > about["passes"]:
            continue
        yield Finding(
            rule=RULE.name,
            family=RULE.family,
            severity="error",
            confidence=0.95,
            title=f"the iterator made at {about.line} is used up: every further epoch gets nothing from it",
            evidence=(
                f"its one pass came to an end, and it was asked {about['again']:,} more times without being made anew",
                f"the training stands at step {about['step']:,}",
            ),
            where=about.where(),
            fix=Fix("Make the iterator (`iter(loader)`, `zip(…)`) inside the loop over the epochs, not before it."),
            seen_by="flight",
        )
        break  # of loaders drawn together one tells it


RULE = Rule("loader-exhausted", "loop", decide, explains=frozenset(("stop-condition-never-met", "endless-epoch")))
