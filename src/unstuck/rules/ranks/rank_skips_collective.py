"""rank-skips-collective: ranks wait in a collective that one of them never calls.

What it sees
    Some ranks stand in a collective (all_reduce, barrier, the backward pass of DistributedDataParallel, new_group) or
    in a `recv` or `send`; another rank of the same group has not made its call, and is somewhere else.

Why it matters
    A collective returns only when every rank of its group has called it. The others stand still, with their GPUs,
    until the timeout of the process group ends the job.

Evidence
    The roll-call: which ranks wait in which call (its number in the group, and the line), where the missing rank is
    instead, and the `if` by which it went another way. If the missing rank has a finding of its own, that one is
    the cause, and this is its consequence.

Fix
    Let every rank make the same calls in the same order: no collective inside an `if` that depends on the rank or on
    its data.

When it is wrong
    A rank that is merely late, with work that takes much longer than ever before. Reported at once only where every
    rank stands in a call, else after the time of any other standstill, at Ctrl-C, or by `unstuck attach`.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules.rank_calls import COUNTERPART
from unstuck.rules.ranks.separation import Separation, separation
from unstuck.rules.rule import Rule
from unstuck.rules.words import place


def decide(case: Case) -> Iterable[Finding]:
    found = separation(case, "skips")
    if found is None:
        return
    branch, caught = found.branch, found.swallowed
    yield RULE.finding(
        severity="error",
        confidence=found.confidence,
        title=f"{found.who_waits} in {found.call}, {_not_made(found)}",
        evidence=(
            *found.roll_call,
            f"they parted at the `if` at {place(branch)}" if branch is not None else "",
            f"rank {found.missing.rank} caught {caught[1]} from {place(caught[0])}, and made no step of that batch"
            if caught is not None
            else "",
            found.lasting,
        ),
        where=found.where(branch or (caught[0] if caught is not None else None)),
        fix=_fix(found, branch is not None, caught is not None),
        seen_by=found.seen_by,
        also=found.also(),
    )


def _fix(found: Separation, branch: bool, caught: bool) -> str:
    if branch:
        return (
            "Let every rank make this call: move it out of the `if`, or let a rank that has nothing to add give a zero."
        )
    if caught:
        return "Let a rank that drops a batch make the step all the same, with another batch, or let all ranks drop it."
    elsewhere = "is in another call" if found.missing.call is not None else "is elsewhere"
    return f"Find out why {found.who_is_missing} {elsewhere}; every rank must make the same calls in the same order."


def _not_made(found: Separation) -> str:
    call = found.waiting[0].call
    assert call is not None
    if call.kind in COUNTERPART:
        return f"and {found.who_is_missing} {found.is_or_are} not in the {COUNTERPART[call.kind]} that it needs"
    return f"which {found.who_is_missing} did not call"


RULE = Rule(
    "rank-skips-collective",
    "ranks",
    decide,
    explains=frozenset(
        (
            "waits-on-rank",
            "progress-unknown",
            "waits-on-io",
            "waits-for-nobody",
            "waits-on-device",
            "uncaught-exception",
            "native-crash",
        )
    ),
    disproved_by_end=True,
)
