"""category-as-number: a column of codes is given to the model as if it were a quantity.

What it sees
    A column of whole numbers that says much of the target if each value is taken for itself, and at most a third of
    that if it is taken as a quantity.

Why training stops
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
from typing import Any

from unstuck.model import Case, Finding, Fix
from unstuck.rules.data.seen import called, listed, seen
from unstuck.rules.rule import Rule

TIMES = 3.0
CLEAR = 0.2
"""An association worth a word."""
KEPT = 200
FLOOR = 0.02


def decide(case: Case) -> Iterable[Finding]:
    for data in seen(case):
        for part in data.features():
            codes = [column for column in part["columns"] if _coded(column)]
            if not codes:
                continue
            worst = max(codes, key=lambda column: column["as_category"])
            yield Finding(
                rule=RULE.name,
                family=RULE.family,
                severity="info",
                confidence=0.7,
                title=f"{called(part, worst['column'])} holds codes, but is given to the model as a number".replace(
                    "column", "Column", 1
                ),
                evidence=(
                    *(
                        f"{called(part, column['column'])}: association with the target {column['as_category']:.2f} "
                        f"as a category of {column['codes']} codes, {column['as_number']:.2f} as a number "
                        f"({int(column['kept']):,} samples)"
                        for column in codes[:4]
                    ),
                    f"columns like this: {listed([column['column'] for column in codes])}",
                ),
                where=data.where(),
                fix=Fix("One-hot encode the column (`F.one_hot`), or give it an `nn.Embedding`."),
                seen_by="flight",
                also=data.also(),
            )
            break


def _coded(column: dict[str, Any]) -> bool:
    if "as_category" not in column or column.get("kept", 0) < KEPT:
        return False
    return bool(column["as_category"] >= CLEAR and column["as_category"] >= TIMES * max(FLOOR, column["as_number"]))


RULE = Rule("category-as-number", "data", decide, gathers=True)
