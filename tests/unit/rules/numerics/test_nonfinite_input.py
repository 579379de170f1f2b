"""Data that contains NaN or Inf."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.rules.numerics.trainings import OUTSIDE, birth, broken_loss, found, operation, tensor
from unstuck.recorder.records.numerics import DrawnBatch
from unstuck.rules.numerics import nonfinite_born, nonfinite_input


def test_bad_data_is_named_by_sample_and_column() -> None:
    batch = [DrawnBatch(number=3, size=30, indices=list(range(400, 430)))]
    whole = tensor(
        shape=[900, 4], rows=[428], address=1, name="x", function="main", assigned=("/project/train.py", 20, "main")
    )
    mine = tensor(name="xb", function="main")
    births = [birth(outside=[OUTSIDE], inputs=[whole, mine], batch=batch, operations=[operation("result", made=False)])]
    (finding,) = found(nonfinite_input.RULE, losses=[broken_loss()], births=births)
    assert "`xb`, sample 428, column 1" in finding.title
    assert (finding.where.line, finding.where.sample) == (20, 428)
    assert not found(nonfinite_born.RULE, losses=[broken_loss()], births=births)


def test_a_mask_of_negative_infinity_is_no_bad_data() -> None:
    mask = replace(OUTSIDE, negative_inf_only=True, operation="add", role="other")
    births = [birth(outside=[mask], operations=[operation("log-of-zero")])]
    assert not found(nonfinite_input.RULE, losses=[broken_loss()], births=births)


def test_negative_infinity_that_a_layer_gets_is_no_mask() -> None:
    births = [birth(outside=[replace(OUTSIDE, negative_inf_only=True)])]
    assert found(nonfinite_input.RULE, losses=[broken_loss()], births=births)
