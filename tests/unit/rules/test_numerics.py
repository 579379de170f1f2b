"""Rules of the family `numerics`, on Cases written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from unstuck.model import Case, Finding, Outcome
from unstuck.recorder.records.learning import Learning, Loss, LossHead, Optimizer, Parameter, Targets
from unstuck.recorder.records.numerics import (
    BadTensor,
    Birth,
    BrokenParameter,
    Clips,
    ComputedValue,
    DrawnBatch,
    GrownWeight,
    LargeRows,
    Operation,
    Scaler,
    Spike,
    Why,
)
from unstuck.rules.numerics import (
    all_labels_ignored,
    clip_before_unscale,
    exploding_gradient,
    loss_scale_collapsed,
    loss_spike,
    nonfinite_born,
    nonfinite_input,
    vanishing_gradient,
)
from unstuck.rules.numerics.reasons import REASONS, reason
from unstuck.rules.rule import Rule

SITE = ("/project/train.py", 30, "main")
LINE = ("/project/train.py", 12, "loss_of")


def loss(**more: Any) -> Loss:
    values = [1.0] * 100
    plain = {"site": SITE, "count": 100, "first": values[:32], "points": list(enumerate(values)), "last": 1.0}
    return Loss(**{**plain, **more})


def broken_loss(before: int = 3) -> Loss:
    values = [1.0] * before
    return loss(count=before, first=values, points=list(enumerate(values)), nonfinite=97, nonfinite_step=before)


def parameter(name: str, grad: float, **more: Any) -> Parameter:
    plain: dict[str, Any] = {"name": name, "module": "Linear", "shape": [8, 8], "numel": 64, "owner": 0, "seen": 40}
    steps = range(40)
    curves = {"grads": [(n, grad) for n in steps], "weights": [1.0] * 40, "moves": [(n, 1e-3) for n in steps]}
    return Parameter(**{**plain, "in_graph": 40, **curves, **more})


def birth(**more: Any) -> Birth:
    return Birth(**{"value": float("nan"), "step": 3, "site": SITE, "before": 3, "last": 1.0, **more})


def operation(why: Why, **more: Any) -> Operation:
    about: dict[str, Any] = {"operation": "log", "order": 9, "layer": "model.2", "path": [0], "made": True}
    rows = {"count": 1, "of": 40, "rows": [12], "bad_rows": 1}
    return Operation(**{**about, **rows, "why": why, "example": "0.0", "site": LINE, **more})


def tensor(**more: Any) -> BadTensor:
    about: dict[str, Any] = {"shape": [30, 4], "nan": 1, "columns": [1], "count": 1, "of": 120, "rows": [28]}
    return BadTensor(**{**about, "bad_rows": 1, "address": 7, **more})


OUTSIDE = tensor(order=5, operation="addmm", role="mat1", path=[0])
IGNORED = operation("labels-ignored", detail="ignore_index (-100)", operation="nll_loss")
BROKEN = [BrokenParameter(name="model.0.weight", shape=[4, 4])]


def found(rule: Rule, outcome: Outcome = "finished", **more: Any) -> list[Finding]:
    sgd = Optimizer(number=0, kind="SGD", steps=100, lrs=[(0, 0.1)])
    plain: dict[str, Any] = {"steps": 100, "backwards": 100, "losses": [loss()], "optimizers": [sgd], "clears": 100}
    case = Case(outcome=outcome, learnings=(Learning(**{**plain, "pid": 5, **more}),))
    return [word for word in rule.decide(case) if isinstance(word, Finding)]


# --- values that are no number -------------------------------------------------------------------------------


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
    assert "no number" in finding.title
    assert "at step 2" in finding.evidence[0]


def test_data_that_is_no_number_is_named_by_sample_and_column() -> None:
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
    births = [birth(outside=[replace(OUTSIDE, negative_inf_only=True)], operations=[operation("log-of-zero")])]
    assert not found(nonfinite_input.RULE, losses=[broken_loss()], births=births)


def test_labels_that_are_all_ignored() -> None:
    births = [birth(operations=[IGNORED])]
    assert found(all_labels_ignored.RULE, losses=[broken_loss()], births=births)
    assert not found(nonfinite_born.RULE, losses=[broken_loss()], births=births)


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


def test_single_losses_that_are_no_number_are_a_warning() -> None:
    births = [birth(operations=[operation("log-of-zero")])]
    (finding,) = found(nonfinite_born.RULE, losses=[loss(nonfinite=5, nonfinite_step=3)], births=births)
    assert finding.severity == "warning"


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(get_args(Why))
    assert reason(operation("log-of-zero", operation="log1_p")) == "log1p of -1"
    assert reason(operation("power", detail="power 0.5", masked_out=True)).startswith("power 0.5, in a part that is")


# --- gradients -----------------------------------------------------------------------------------------------


def exploding(grad: float) -> dict[str, Any]:
    weight = parameter("model.rnn.weight_hh_l0", grad, weights=[7.0], grads=[(0, grad)], moves=[(0, 360.0)])
    grown = [GrownWeight(name="model.rnn.weight_hh_l0", before=7.0, now=364.0)]
    bad = operation("result", made=False, operation="relu")
    return {
        "losses": [broken_loss(1)],
        "parameters": [weight],
        "births": [birth(weights=grown, operations=[bad], step=1)],
    }


def test_gradients_beyond_what_loss_and_weight_explain_explode() -> None:
    (finding,) = found(exploding_gradient.RULE, **exploding(18_000.0))
    assert "weight_hh_l0" in finding.title
    assert finding.where.line == 30
    assert not found(nonfinite_born.RULE, **exploding(18_000.0))


def test_a_rate_that_is_too_high_is_no_exploding_gradient() -> None:
    assert not found(exploding_gradient.RULE, **exploding(1.0))
    assert not found(nonfinite_born.RULE, **exploding(1.0))


def test_a_steep_start_that_nothing_comes_of_is_silent() -> None:
    weight = parameter("model.rnn.weight_hh_l0", 18_000.0)
    assert not found(exploding_gradient.RULE, parameters=[weight])


def layers(ratio: float) -> list[Parameter]:
    return [parameter(f"model.{12 - n}.weight", ratio ** (n / 5)) for n in range(6)]


def test_a_gradient_that_vanishes_while_the_loss_stands() -> None:
    (finding,) = found(vanishing_gradient.RULE, parameters=layers(1e-6))
    assert "1,000,000 times smaller" in finding.title
    bias = parameter("model.7.bias", 1e-6, shape=[8])
    assert found(vanishing_gradient.RULE, parameters=[*layers(1e-6), bias])


def test_biases_without_a_name_are_nobodys() -> None:
    nameless = [replace(each, name="") for each in (*layers(1e-6), parameter("model.12.bias", 1.0, shape=[8]))]
    assert found(vanishing_gradient.RULE, parameters=nameless)


@pytest.mark.parametrize(
    "more",
    [
        {"parameters": layers(1e-2)},
        {"parameters": layers(1e-6), "losses": [loss(points=[(n, 2.0 - n / 60) for n in range(100)])]},
        {"parameters": layers(1e-6)[:3]},
        {"parameters": [*layers(1e-6)[:-1], parameter("model.embed.weight", 1e-6, module="Embedding")][2:]},
        {"parameters": [replace(each, module="LSTM") for each in layers(1e-6)]},
        {"parameters": [*layers(1e-6), parameter("model.7.bias", 0.5, shape=[8])]},
        {"parameters": [*layers(0.5)[:-1], parameter("model.7.weight", 1e-9)]},
    ],
    ids=["not far", "it learns", "shallow", "embedding", "recurrent", "tiny input", "tiny input without a bias"],
)
def test_no_vanishing_gradient(more: dict[str, Any]) -> None:
    assert not found(vanishing_gradient.RULE, **more)


# --- loss scaling, spikes ------------------------------------------------------------------------------------


def test_clipping_before_the_unscaling() -> None:
    scaler = Scaler(scale=65536.0, first=65536.0, updates=100)
    clips = Clips(calls=100, clipped=100, sum_ratio=1e6, max_norm=1.0, scaled=100, site=LINE)
    (finding,) = found(clip_before_unscale.RULE, clips=clips, scaler=scaler)
    assert finding.where.line == 12
    assert not found(clip_before_unscale.RULE, clips=replace(clips, scaled=0), scaler=scaler)
    assert not found(clip_before_unscale.RULE, clips=clips)


def test_a_loss_scale_that_collapsed() -> None:
    fallen = Scaler(scale=0.002, first=65536.0, lowest=0.002, updates=160, skipped_in_row=25)
    assert found(loss_scale_collapsed.RULE, scaler=fallen)
    searching = Scaler(scale=8192.0, first=65536.0, lowest=8192.0, updates=160, skipped_in_row=3)
    assert not found(loss_scale_collapsed.RULE, scaler=searching)


def test_spikes_are_told_only_with_what_they_come_from() -> None:
    spike = Spike(step=200, value=6.0, usual=0.5, spread=0.1, site=SITE, number=3, rows=[])
    first, second = replace(spike, indices=[1, 2, 1370]), replace(spike, step=300, indices=[9, 1370, 8])
    (finding,) = found(loss_spike.RULE, spikes=[first, second])
    assert finding.where.sample == 1370
    by_chance = [replace(spike, indices=[*range(24), 90]), replace(second, indices=[5, 90])]
    assert not found(loss_spike.RULE, spikes=by_chance)
    assert not found(loss_spike.RULE, spikes=[first])
    assert not found(loss_spike.RULE, spikes=[first, replace(second, indices=[9, 8])])
    rows = [LargeRows(name="r", rows=[1], largest=9.0, usual=0.1, shape=[3])]
    large = [replace(first, indices=[1, 2, 3], rows=rows), replace(second, indices=[4, 5, 6], rows=rows)]
    unexplained = replace(spike, step=310, indices=[7, 8, 9])
    unseen = replace(unexplained, rows=None)
    assert found(loss_spike.RULE, spikes=[*large, unseen, unseen]), "nobody had time to look at these"
    assert not found(loss_spike.RULE, spikes=[*large, unexplained, unexplained])
    own = [replace(spike, rows=rows), replace(spike, step=300, rows=rows)]
    assert not found(loss_spike.RULE, spikes=own), "rewards have rare large values by nature"


def test_a_single_number_that_is_none() -> None:
    alone = replace(OUTSIDE, shape=[], rows=[], bad_rows=0, operation="mul", site=LINE)
    (finding,) = found(nonfinite_born.RULE, losses=[broken_loss()], births=[birth(outside=[alone])])
    assert finding.title.startswith("A single number that is NaN, given to `mul` (train.py:12)")
    assert not found(nonfinite_input.RULE, losses=[broken_loss()], births=[birth(outside=[alone])])


def test_what_the_script_computed_of_numbers() -> None:
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
    assert finding.title == "The loss is nan from step 2 on"
    assert "--trace-nan" in finding.fix.text


def test_an_ignored_batch_is_told_once() -> None:
    births = [birth(operations=[IGNORED])]
    head = LossHead(op="cross_entropy", times=20, target=Targets(count=0, batches=20), site=SITE, called=SITE)
    assert len(found(all_labels_ignored.RULE, losses=[broken_loss()], births=births, heads=[head])) == 1
    assert len(found(all_labels_ignored.RULE, heads=[head])) == 1


STEEP = operation("slope-of-root", operation="sqrt", backward=True, step=99)
FALLEN = Scaler(scale=0.001, first=16384.0, updates=24, skipped_in_row=24)


def test_a_gradient_that_a_scaler_hides() -> None:
    (finding,) = found(nonfinite_born.RULE, scaler=FALLEN, steep=STEEP)
    assert (finding.where.line, finding.severity) == (12, "error")
    assert "root at 0" in finding.title
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
