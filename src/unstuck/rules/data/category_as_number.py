"""category-as-number: the model gets a column of codes as if they were quantities.

What it sees
    A column of few distinct values, whole numbers or others at even distances (an index divided by how many there are,
    or standardized), that says much about the target if each value is a category of its own. Of 16 values or more:
    hardly more than chance would leave of that is left where values that are neighbours mean nearly the same, and no
    single value makes up half of it. Of fewer, which must be whole: at most a third of it is left if the value is a
    quantity. Samples may have several values each, as a molecule has atoms; then it counts how often each is there.

Why it matters
    A layer can only weigh the number: code 7 counts as seven times code 1, and the model has to work with an order of
    the codes that means nothing. What the column says is mostly lost.

Evidence
    Both associations with the target (Cramér's V or the correlation ratio, less what chance gives), how many codes
    there are and over how many samples.

Fix
    One-hot encode the column (`F.one_hot`), or give it an `nn.Embedding`.

When it is wrong
    A few values of a quantity can go up and down with the target too, and so can many with a short period (the day of
    the week, of numbered days); a deep model copes with many codes. It is information only.
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
MAX_SMOOTH = 3.0  # standard deviations: of counts, ages, ratings and hours more, of codes in 1 of 100 cases
MAX_ONE = 0.6  # share of one code: a count of 0, a code for "unknown"


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
                        f"category of {link.codes} codes, {link.as_number:.2f} as a number "
                        f"({_rows(column, link):,} samples)"
                        for column, link in codes[:4]
                    ),
                    f"columns like this: {listed([column.column for column, _ in codes])}",
                ),
                where=data.where(),
                fix="One-hot encode the column (`F.one_hot`), or give it an `nn.Embedding`.",
                also=data.also(),
            )
            break


def _rows(column: ColumnStats, link: Link) -> int:
    return link.rows or (column.spread.kept if column.spread is not None else 0)


def _coded(column: ColumnStats, link: Link) -> bool:
    if link.as_category < MIN_ASSOCIATION or _rows(column, link) < MIN_ROWS:
        return False
    if link.smooth is not None and link.one is not None:
        return link.smooth <= MAX_SMOOTH and link.one <= MAX_ONE
    return link.as_category >= MIN_RATIO * max(MIN_AS_NUMBER, link.as_number)


RULE = Rule("category-as-number", "data", decide, gathers=True)
