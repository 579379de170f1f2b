"""collectives-differ: ranks wait in different calls, each for the others to join its own.

What it sees
    Ranks made different calls as their call of the same number in a group: another function, shape, dtype or source
    rank; or every rank stands in a call, and these do not fit together: other groups, two `recv` without a `send`,
    another model in DistributedDataParallel.

Why it matters
    Ranks are matched by the order of their calls, not by their names. Calls that do not match wait for each other
    forever, or fail, or mix up data.

Evidence
    The roll-call: which ranks are in which call, with its number in the group and its line; shapes and source ranks
    where these differ.

Fix
    The same calls, in the same order, with the same shapes, on every rank; with two groups, in the same order too.

When it is wrong
    Never seen. It speaks only where every rank stands in a call and none has moved, or where the run died.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.rules import rank_words
from unstuck.rules.rank_calls import FROM_ONE
from unstuck.rules.rank_positions import Position
from unstuck.rules.ranks.separation import Separation, separation
from unstuck.rules.rule import Rule


def decide(case: Case) -> Iterable[Finding]:
    found = separation(case, "differ")
    if found is None:
        return
    first, other = found.waiting[0], found.missing
    if first.call is None or other.call is None:
        return
    another_model = other.call.kind == "ddp_parameters" and other.call.raised and other.call.number < first.call.number
    title = _calls(found, first, other)
    if another_model:  # the check of those that agree with the first rank has passed
        title = f"{found.who_is_missing} wraps another model in DistributedDataParallel than rank {first.rank}"
    yield RULE.finding(
        severity="error",
        confidence=found.confidence,
        title=title,
        evidence=(
            *found.roll_call,
            f"they are in different groups: {first.call.group} and {other.call.group}"
            if first.call.group != other.call.group
            else "",
            f"`{other.error}: {other.died.raised.message[:160]}`" if other.died is not None and another_model else "",
            found.lasting,
        ),
        where=found.where(),
        fix="Build the same model on every rank: the same layers, of the same sizes, in the same order."
        if another_model
        else "Let every rank make the same calls in the same order"
        + (", with tensors of the same shape and dtype." if first.call.kind == other.call.kind else "."),
        seen_by=found.seen_by,
        also=found.also(),
    )


def _calls(found: Separation, first: Position, other: Position) -> str:
    assert first.call is not None
    assert other.call is not None
    calls = f"{rank_words.named_call(other.call, other.frame)}{_arguments(other, first)}"
    return f"{found.who_waits} in {found.call}{_arguments(first, other)}, {found.who_is_missing} in {calls}"


def _arguments(one: Position, other: Position) -> str:
    """What is different, where both are the same function."""
    a, b = one.call, other.call
    if a is None or b is None or a.kind != b.kind:
        return ""
    if rank_words.shape(a) != rank_words.shape(b):
        return f" with {rank_words.shape(a)}"
    return f" from rank {a.peer}" if a.kind in FROM_ONE and a.peer != b.peer and a.peer is not None else ""


RULE = Rule(
    "collectives-differ",
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
