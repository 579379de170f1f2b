"""category-as-number: the model gets a column of codes as if they were quantities.

What it sees
    A column of whole numbers that says much about the target if each value is a category of its own, and at most a
    third of that if it is a quantity.

Why it matters
    A layer can only weigh the number: code 7 counts as seven times code 1, and the model has to work with an order of
    the codes that means nothing. What the column says is mostly lost.

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

from unstuck.model import Case, Finding
from unstuck.recorder.records.data import ColumnStats, Link
from unstuck.rules.data.contents import listed, part_name, read_data
from unstuck.rules.rule import Rule

MIN_RATIO = 3.0  # association as a category compared with that as a number
MIN_ASSOCIATION = 0.2
MIN_AS_NUMBER = 0.02  # less counts as this
MIN_ROWS = 200


def decide(case: Case) -> Iterable[Finding]:
    for data in read_data(case):
        for part in data.features():
            codes = [(column, column.link) for column in part.columns if column.link and _coded(column, column.link)]
            if not codes:
                continue
            worst, _ = max(codes, key=lambda pair: pair[1].as_category)
            yield RULE.finding(
                severity="info",
                confidence=0.7,
                title=f"{part_name(part, worst.column)} holds codes, but the model gets it as a number",
                evidence=(
                    *(
                        f"{part_name(part, column.column)}: association with the target {link.as_category:.2f} as a "
                        f"category of {link.codes} codes, {link.as_number:.2f} as a number ({_rows(column):,} samples)"
                        for column, link in codes[:4]
                    ),
                    f"columns like this: {listed([column.column for column, _ in codes])}",
                ),
                where=data.where(),
                fix="One-hot encode the column (`F.one_hot`), or give it an `nn.Embedding`.",
                also=data.also(),
            )
            break


def _rows(column: ColumnStats) -> int:
    return column.spread.kept if column.spread is not None else 0


def _coded(column: ColumnStats, link: Link) -> bool:
    clear = link.as_category >= max(MIN_ASSOCIATION, MIN_RATIO * max(MIN_AS_NUMBER, link.as_number))
    return clear and _rows(column) >= MIN_ROWS


RULE = Rule("category-as-number", "data", decide, gathers=True)
