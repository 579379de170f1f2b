"""uneven-batches: one rank has no batches left while the others still train on theirs.

What it sees
    A rank has come to the end of its loader; others are in the middle of the same pass, and wait in a collective for
    it.

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
from unstuck.rules.ranks.separation import Separation, ended_sooner, separation
from unstuck.rules.rule import Rule
from unstuck.text import spot


def decide(case: Case) -> Iterable[Finding]:
    found = separation(case, "uneven")
    if found is None:
        return
    ended = ended_sooner(case, found.missing, found.waiting[0])
    assert ended is not None
    batches, length = ended
    waits = found.waiting[0]
    where = _loop(found)
    at = f" at {spot(where.file, where.line or 0)}" if where.file else ""
    yield RULE.finding(
        severity="error",
        confidence=found.confidence,
        title=f"rank {found.missing.rank} ran out of batches after {batches:,}; rank {waits.rank} {_more(length)}",
        evidence=(
            f"the pass over the loader{at}: {batches:,} batches on rank {found.missing.rank}, "
            f"{f'{length:,}' if length is not None else 'more'} on rank {waits.rank}",
            *found.roll_call,
        ),
        where=where,
        fix="Give every rank the same number of batches (DistributedSampler, drop_last=True, shards of equal size), or "
        "wrap the loop into torch.distributed.algorithms.join.Join([model]).",
        also=found.also(),
    )


def _more(length: int | None) -> str:
    return f"has {length:,}" if length is not None else "has more"


def _loop(found: Separation) -> Where:
    """The loop over the loader, of the rank that has ended it."""
    pid = found.missing.flight.pid
    ended = next(record for record in reversed(found.case.passes_ended) if record.pid == pid and record.site)
    assert ended.site is not None
    file, line, function = ended.site
    return Where(file, line, function or None, pid, rank=found.missing.rank, step=found.missing.flight.step)


RULE = Rule(
    "uneven-batches",
    "ranks",
    decide,
    explains=frozenset(
        ("waits-on-rank", "progress-unknown", "waits-on-io", "waits-for-nobody", "uncaught-exception", "native-crash")
    ),
    disproved_by_end=True,
)
