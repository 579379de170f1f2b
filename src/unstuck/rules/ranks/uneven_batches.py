"""uneven-batches: one rank has no batches left while the others still train on theirs.

What it sees
    A rank has come to the end of its loader; others are in the middle of the same pass, with more batches to come, and
    wait in a collective for it, or died of its end.

Why it matters
    Each step of the training is a collective. A rank with fewer batches makes fewer of them: at the end of the epoch
    the others wait for a step that it never makes.

Evidence
    The number of batches of each rank, the roll-call, and the line of the loop.

Fix
    Give every rank the same number of batches (`DistributedSampler`, `drop_last=True`, shards of equal size), or wrap
    the loop into `torch.distributed.algorithms.join.Join`.

When it is wrong
    Never seen: the pass of one rank has ended, and that of the other has not.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Where
from unstuck.rules.ranks.separation import ended_sooner, separation
from unstuck.rules.rule import Rule
from unstuck.text import spot


def decide(case: Case) -> Iterable[Finding]:
    found = separation(case, "uneven")
    if found is None:
        return
    ended = ended_sooner(case, found.missing, found.waiting[0])
    assert ended is not None
    (file, line, function), batches, length = ended
    waits, flight = found.waiting[0], found.missing.flight
    yield RULE.finding(
        severity="error",
        confidence=found.confidence,
        title=f"rank {found.missing.rank} ran out of batches after {batches:,}; rank {waits.rank} {_more(length)}",
        evidence=(
            f"the pass over the loader at {spot(file, line)}: {batches:,} batches on rank {found.missing.rank}, "
            f"{f'{length:,}' if length is not None else 'more'} on rank {waits.rank}",
            *found.roll_call,
        ),
        where=Where(file, line, function or None, flight.pid, rank=found.missing.rank, step=flight.step),
        fix="Give every rank the same number of batches (DistributedSampler, drop_last=True, shards of equal size), or "
        "wrap the loop into torch.distributed.algorithms.join.Join([model]).",
        also=found.also(),
    )


def _more(length: int | None) -> str:
    return f"has {length:,}" if length is not None else "has more"


RULE = Rule(
    "uneven-batches",
    "ranks",
    decide,
    explains=frozenset(
        ("waits-on-rank", "progress-unknown", "waits-on-io", "waits-for-nobody", "uncaught-exception", "native-crash")
    ),
    disproved_by_end=True,
)
