"""rows-lost-in-shuffle: shuffling an array in place copies some of its rows over others.

What it sees
    `random.shuffle` on an array of two or more dimensions, or on a tensor; afterwards some rows are there more often
    than before, and others are gone.

Why it matters
    `random.shuffle` swaps elements with `x[i], x[j] = x[j], x[i]`. Those of such an array are views of it: the second
    assignment reads what the first has just written. About half of the rows are lost at the first call, and more at
    each further one, until the model is trained on copies of a few. Only validation shows it.

Evidence
    The line, the shape, how many rows one call lost, how many different rows there were and how many are left.

Fix
    `numpy.random.shuffle(x)`, `rng.shuffle(x)` or `rng.permutation(x)`; for a tensor `x[torch.randperm(len(x))]`.

When it is wrong
    Never about the rows: before and after the call they are counted. Where nothing is trained it is information only.
    Lists, arrays of one dimension, and arrays too large to be compared within a moment, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding
from unstuck.recorder.records.data import LostRows
from unstuck.rules.loader_reports import first_of
from unstuck.rules.rule import Rule

MIN_ROWS = 16  # fewer are no dataset
MIN_LOST_SHARE = 0.02  # of the rows


def decide(case: Case) -> Iterable[Finding]:
    training = {learning.pid for learning in case.learnings}
    for lost in {(lost.pid, lost.site): lost for lost in case.lost_rows}.values():
        gone = max(lost.lost, lost.different - lost.left)
        if lost.shape[0] >= MIN_ROWS and gone >= MIN_LOST_SHARE * lost.shape[0]:
            yield _finding(lost, lost.pid in training)


def _finding(lost: LostRows, trains: bool) -> Finding:
    size = " × ".join(str(length) for length in lost.shape)
    kind = "a tensor" if lost.tensor else "an array"
    calls = "one call" if lost.calls == 1 else f"{lost.calls:,} calls"
    return RULE.finding(
        severity="error" if trains else "info",
        confidence=0.98 if trains else 0.9,
        title=f"random.shuffle copies rows of {kind} over others: {lost.left:,} of {lost.different:,} are left",
        evidence=(
            f"{kind} of {size} had {lost.different:,} different rows before the first call at this line, and "
            f"{lost.left:,} after {calls}",
            f"the last call that was checked lost {lost.lost:,} of {lost.shape[0]:,} rows and doubled as many",
            f"it swaps rows of {kind} through views: the second of two rows is overwritten before it is copied",
        ),
        where=first_of(lost.pid, None, lost.site),
        fix="Shuffle by a permutation: `x = x[torch.randperm(len(x))]`."
        if lost.tensor
        else "Use `numpy.random.shuffle(x)` or `x = rng.permutation(x)`, which move whole rows.",
    )


RULE = Rule(
    "rows-lost-in-shuffle",
    "data",
    decide,
    explains=frozenset(("no-better-than-constant", "labels-unrelated-to-inputs")),
    gathers=True,
)
