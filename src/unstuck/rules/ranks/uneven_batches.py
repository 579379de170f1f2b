"""uneven-batches: one rank has no batches left while the others still train on theirs.

What it sees
    A rank has come to the end of its loader; others are in the middle of the same pass, with more batches to come, and
    wait in a collective for it, or died of its end. Without a loader: a rank is in a call behind the loop around its
    steps, and others, after as many steps, are in a call of that loop.

Why it matters
    Each step of the training is a collective. A rank with fewer batches makes fewer of them: at the end of the epoch
    the others wait for a step that it never makes.

Evidence
    The number of batches of each rank, the roll-call, and the line of the loop.

Fix
    Give every rank the same number of batches (`DistributedSampler`, `drop_last=True`, shards of equal size), or wrap
    the loop into `torch.distributed.algorithms.join.Join`.

When it is wrong
    Never seen: the pass of one rank has ended, and that of the other has not. Without a loader it speaks only of a
    `for` that nothing else ends, and where no `if` and no jump leads round the call behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Where
from unstuck.rules.rank_positions import Position
from unstuck.rules.ranks.fewer_rounds import Ended, ended_sooner
from unstuck.rules.ranks.separation import separation
from unstuck.rules.rule import Rule
from unstuck.text import count, spot


def decide(case: Case) -> Iterable[Finding]:
    found = separation(case, "uneven")
    if found is None:
        return
    ended = ended_sooner(case, found.missing, found.waiting[0])
    assert ended is not None
    file, line, function = ended.site
    waits, flight = found.waiting[0], found.missing.flight
    yield RULE.finding(
        severity="error",
        confidence=found.confidence,
        title=f"rank {found.missing.rank} ran out of batches{_after(ended)}; rank {waits.rank} {_more(ended.more)}",
        evidence=(_passes(ended, found.missing, waits), *found.roll_call),
        where=Where(file, line, function or None, flight.pid, rank=found.missing.rank, step=flight.step),
        fix="Give every rank the same number of batches (DistributedSampler, drop_last=True, shards of equal size), or "
        "wrap the loop into torch.distributed.algorithms.join.Join([model]).",
        also=found.also(),
    )


def _after(ended: Ended) -> str:
    return f" after {ended.batches:,}" if ended.batches is not None else ""


def _passes(ended: Ended, missing: Position, waits: Position) -> str:
    at, (few, many) = spot(ended.site[0], ended.site[1]), (f"rank {missing.rank}", f"rank {waits.rank}")
    if not ended.loop:
        more = f"{ended.more:,}" if ended.more is not None else "more"
        return f"the pass over the loader at {at}: {ended.batches:,} batches on {few}, {more} on {many}"
    steps = f"{count(ended.batches, 'step')} in this pass" if ended.batches is not None else "its last step"
    return f"{few} made {steps} of the loop `{ended.loop}` at {at} and has left it; {many} is in one more"


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
