"""category-as-number: a column of codes is given to the model as if it were a quantity.

What it sees
    A column of whole numbers that says much of the target if each value is taken for itself, and at most a third of
    that if it is taken as a quantity.

Why it matters
    A layer can only weigh the number: code 7 counts as seven times code 1, and the order of the codes, which means
    nothing, is what it has to go by.

Evidence
    Both associations with the target (Cramér's V or the correlation ratio, less what chance gives), how many codes
    there are and over how many samples.

Fix
    One-hot encode the column (`F.one_hot`), or give it an `nn.Embedding`.

When it is wrong
    Counts, ages and years can go up and down with the target too, and a deep model copes with many codes. It is
    information only.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model import Case, Finding, Fix
from unstuck.recorder.records.data import ColumnStats, Link, PartSeen
from unstuck.rules.data.seen import Data, called, listed, seen
from unstuck.rules.rule import Rule

TIMES = 3.0
CLEAR = 0.2
"""An association worth a word."""
KEPT = 200
FLOOR = 0.02


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        coded = ((part, [pair for column in part.columns if (pair := _coded(column))]) for part in data.features())
        first = next(((part, codes) for part, codes in coded if codes), None)
        if first is not None:
            yield _finding(data, *first)


def _coded(column: ColumnStats) -> tuple[ColumnStats, Link] | None:
    link = column.link
    if link is None or column.spread is None or column.spread.kept < KEPT:
        return None
    clear = link.as_category >= CLEAR and link.as_category >= TIMES * max(FLOOR, link.as_number)
    return (column, link) if clear else None


def _finding(data: Data, part: PartSeen, codes: list[tuple[ColumnStats, Link]]) -> Finding:
    worst, _ = max(codes, key=lambda pair: pair[1].as_category)
    name = called(part, worst.column).replace("column", "Column", 1)
    return RULE.finding(
        severity="info",
        confidence=0.7,
        title=f"{name} holds codes, but is given to the model as a number",
        evidence=(
            *(_line(part, column, link) for column, link in codes[:4]),
            f"columns like this: {listed([column.column for column, _ in codes])}",
        ),
        where=data.where(),
        fix=Fix("One-hot encode the column (`F.one_hot`), or give it an `nn.Embedding`."),
        seen_by="flight",
        also=data.also(),
    )


def _line(part: PartSeen, column: ColumnStats, link: Link) -> str:
    kept = column.spread.kept if column.spread is not None else 0
    return (
        f"{called(part, column.column)}: association with the target {link.as_category:.2f} "
        f"as a category of {link.codes} codes, {link.as_number:.2f} as a number ({kept:,} samples)"
    )


RULE = Rule("category-as-number", "data", decide, gathers=True)
