"""Units with the same weights."""

from __future__ import annotations

from tests.unit.rules.learning.ownership import SITE, case, parameter, said
from unstuck.rules.numerics import symmetric_weights


def test_rows_alike_that_stay_alike() -> None:
    (finding,) = said(symmetric_weights.RULE, case(parameter(alike="same", still_alike=True), first_weights=SITE))
    assert finding.where.line == 30
    assert not said(symmetric_weights.RULE, case(parameter(alike="zero", still_alike=False)))  # LoRA's second half
    frozen = parameter(alike="same", still_alike=True, held=None, owner=None)
    assert not said(symmetric_weights.RULE, case(frozen)), "nobody trains it"


def test_columns_alike_where_the_script_multiplies_itself() -> None:
    (finding,) = said(symmetric_weights.RULE, case(parameter(alike="same", columns_alike=True, held=None)))
    assert "8 columns" in finding.evidence[0]
