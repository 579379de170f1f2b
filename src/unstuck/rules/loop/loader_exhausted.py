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
    `__iter__`.

When it is wrong
    A stream that is meant to be read once, and is asked once more only to see that it is empty.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.rules.loop.loaders import told
from unstuck.rules.loop.rounds import moments
from unstuck.rules.rule import Rule

ROUNDS = 2
"""Passes over other loaders without a step that show that the epochs go on."""


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
    """`pairs = zip(a, b)` made before the epochs: the loop goes on, other passes are made, and no step any more."""
    for moment in moments(case):
        for loop in moment.loops:
            since = [each for each in loop.earlier if each.step == loop.step]
            if not loop.step or not since or not loop.told.get("used_up"):
                continue
            rounds = loop.passes - since[0].passes
            if rounds < ROUNDS or loop.told.get("targets") == since[0].told.get("targets"):
                continue
            drawn = loop.told["used_up"][0]
            yield Finding(
                rule=RULE.name,
                family=RULE.family,
                severity="error",
                confidence=0.9,
                title=f"`{drawn['name']}` is used up after one round: every further epoch makes no step",
                evidence=(
                    f"the training stands at step {loop.step:,} while `{loop.text}` (line {loop.told['first']}) "
                    f"went on and {rounds:,} passes over other loaders were made",
                    f"line {drawn['line']} draws from `{drawn['name']}`, a {drawn['type']} made before the loop: it "
                    f"can be gone through once",
                ),
                where=loop.where(drawn["line"]),
                fix=Fix(
                    f"Make `{drawn['name']}` anew inside the loop at line {loop.told['first']}, or draw from a list."
                ),
                seen_by="flight",
            )
            break


RULE = Rule("loader-exhausted", "loop", decide, explains=frozenset(("stop-condition-never-met", "endless-epoch")))
