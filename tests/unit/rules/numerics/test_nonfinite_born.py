"""An operation that turns finite numbers into NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from tests.unit.rules.numerics.trainings import (
    BROKEN,
    LINE,
    OUTSIDE,
    birth,
    broken_loss,
    found,
    loss,
    operation,
    tensor,
)
from unstuck.recorder.records.numerics import ComputedValue, Operation, Scaler, Why
from unstuck.rules.numerics import nonfinite_born, nonfinite_input
from unstuck.rules.numerics.nan_causes import REASONS, reason


def test_an_operation_is_named_with_its_line_and_its_rows() -> None:
    (finding,) = found(
        nonfinite_born.RULE, losses=[broken_loss()], births=[birth(operations=[operation("log-of-zero")])]
    )
    assert finding.where.line == 12
    assert finding.severity == "error"
    assert "row 12" in finding.evidence[0]
    assert "97 of 100 losses" in finding.evidence[-1]


def test_a_slope_without_end_is_born_in_the_backward_pass() -> None:
    steep = operation("slope-of-root", operation="sqrt", backward=True, step=2)
    births = [birth(operations=[steep], broken_parameters=BROKEN)]
    (finding,) = found(nonfinite_born.RULE, losses=[broken_loss()], births=births)
    assert finding.title.startswith("NaN gradient: the slope of a square root at 0")
    assert "at step 2" in finding.evidence[0]


def test_overflows_that_a_loss_scaler_skips_are_no_finding() -> None:
    scaler = Scaler(scale=1024.0, first=65536.0, lowest=1024.0, updates=100)
    births = [birth(operations=[operation("log-of-zero")])]
    losses = [loss(nonfinite=4, nonfinite_step=3)]
    assert not found(nonfinite_born.RULE, losses=losses, births=births, scaler=scaler)


def test_nothing_is_said_until_it_shows_whether_the_run_is_broken() -> None:
    births = [birth(operations=[operation("log-of-zero")])]
    losses = [loss(count=3, nonfinite=1, nonfinite_step=3)]
    assert not found(nonfinite_born.RULE, "running", losses=losses, births=births)
    assert found(nonfinite_born.RULE, "finished", losses=losses, births=births)[0].severity == "error"


def test_single_nan_losses_are_a_warning() -> None:
    births = [birth(operations=[operation("log-of-zero")])]
    (finding,) = found(nonfinite_born.RULE, losses=[loss(nonfinite=5, nonfinite_step=3)], births=births)
    assert finding.severity == "warning"


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(get_args(Why))
    assert reason(operation("log-of-zero", operation="log1_p")) == "log1p of -1"
    assert reason(operation("power", detail="power 0.5", masked_out=True)).startswith(
        "power 0.5, in elements that are masked out"
    )


def test_a_scalar_that_is_nan() -> None:
    alone = replace(OUTSIDE, shape=[], rows=[], bad_rows=0, operation="mul", site=LINE)
    (finding,) = found(nonfinite_born.RULE, losses=[broken_loss()], births=[birth(outside=[alone])])
    assert finding.title.startswith("A NaN scalar passed to `mul` (train.py:12) makes the loss NaN")
    assert not found(nonfinite_input.RULE, losses=[broken_loss()], births=[birth(outside=[alone])])


def test_what_the_script_computed_itself() -> None:
    made = ComputedValue(operation="std", why="spread-of-too-few", detail="of 1 value", site=LINE)
    adv = tensor(name="adv", function="main", computed=made)
    births = [birth(outside=[OUTSIDE], inputs=[adv])]
    (finding,) = found(nonfinite_born.RULE, losses=[broken_loss()], births=births)
    assert finding.where.line == 12
    assert finding.title.startswith("Standard deviation of 1 value (train.py:12)")
    assert "correction=0" in finding.fix.text
    assert not found(nonfinite_input.RULE, losses=[broken_loss()], births=births)


def test_a_loss_read_late_from_a_gpu() -> None:
    births = [birth(broken_parameters=BROKEN, late=True, since=2)]
    (finding,) = found(nonfinite_born.RULE, losses=[broken_loss()], births=births)
    assert finding.title == "The loss is NaN from step 2 on"
    assert "--trace-nan" in finding.fix.text


STEEP = operation("slope-of-root", operation="sqrt", backward=True, step=99)
FALLEN = Scaler(scale=0.001, first=16384.0, updates=24, skipped_in_row=24)


def test_a_gradient_that_a_scaler_hides() -> None:
    (finding,) = found(nonfinite_born.RULE, scaler=FALLEN, steep=STEEP)
    assert (finding.where.line, finding.severity) == (12, "error")
    assert "square root at 0" in finding.title
    assert "loss-scale-collapsed" in nonfinite_born.RULE.explains


@pytest.mark.parametrize(
    ("scaler", "steep"),
    [
        (None, STEEP),
        (FALLEN, replace(STEEP, step=3)),
        (FALLEN, None),
        (replace(FALLEN, scale=512.0, skipped_in_row=1), STEEP),
    ],
)
def test_a_slope_that_does_no_harm(scaler: Scaler | None, steep: Operation | None) -> None:
    assert found(nonfinite_born.RULE, scaler=scaler, steep=steep) == []


@pytest.mark.parametrize(
    ("more", "title", "known"),
    [
        ({"broken_parameters": BROKEN}, "The gradient of the step before 3 was NaN", "model.0.weight"),
        ({}, "The loss is NaN from step 3 on", "neither a value in the data nor a single operation"),
        ({"operations": [operation("result", made=False)]}, "The loss is NaN from step 3 on", "`log` after model.2"),
        ({"inputs": [tensor(name="x")]}, None, ""),
        (
            {"operations": [operation("result", made=False, dtype="torch.float16")]},
            "A value above the float16 maximum of 65,504 (train.py:12) makes the loss NaN",
            "97 of 100 losses are NaN; the first at step 3 (the one before it was 1)",
        ),
    ],
    ids=["gradient", "nothing known", "oldest result", "data", "half precision"],
)
def test_what_is_known_where_no_operation_was_seen(more: dict[str, Any], title: str | None, known: str) -> None:
    findings = found(nonfinite_born.RULE, losses=[broken_loss()], births=[birth(**more)])
    assert [finding.title for finding in findings] == ([title] if title else [])
    assert all(known in " ".join(finding.evidence) for finding in findings)
