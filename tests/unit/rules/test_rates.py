"""Rules about learning rates, schedules, decay and clipping, on Cases written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.rules.test_loss_functions import SITE, case, classes, head, loss
from unstuck.model import Finding, Outcome
from unstuck.recorder.records.learning import Loss, Optimizer, Parameter, Scheduler
from unstuck.recorder.records.numerics import Clips
from unstuck.rules.learning import (
    clip_too_tight,
    learning_rate_too_high,
    learning_rate_too_low,
    loss_oscillates,
    scheduler_kills_learning_rate,
    still_improving,
    weight_decay_dominates,
)
from unstuck.rules.rule import Rule
from unstuck.serial import from_plain, to_plain

MADE = ("/project/train.py", 12, "")


def optimizer(lr: float = 0.1, kind: str = "SGD", **more: Any) -> Optimizer:
    plain: dict[str, Any] = {"number": 0, "kind": kind, "steps": 200, "lrs": [(0, lr)], "settings": {"lr": lr}}
    return Optimizer(**{**plain, "cosines": [0.3] * 48, "site": MADE, **more})


def weight(moved: float, grad: float = 0.1, size: float = 5.0, **more: Any) -> Parameter:
    plain: dict[str, Any] = {"name": "model.0.weight", "module": "Linear", "shape": [32, 16], "numel": 512, "owner": 0}
    plain["grads"], plain["weights"] = [(n, grad) for n in range(40)], [size] * 40
    plain["moves"] = [(n, moved * size) for n in range(40)]
    return Parameter(**{**plain, "seen": 40, "in_graph": 40, **more})


def found(rule: Rule, outcome: Outcome = "finished", **more: Any) -> list[Finding]:
    given: dict[str, Any] = {"optimizers": [optimizer()], "parameters": [weight(1e-3)], **more}
    return [each for each in rule.decide(case(outcome=outcome, **given)) if isinstance(each, Finding)]


# --- too high, oscillating, too low --------------------------------------------------------------------------


def test_steps_larger_than_the_weights() -> None:
    rule = learning_rate_too_high.RULE
    (finding,) = found(rule, parameters=[weight(14.0)], losses=[loss(2.1, 250.0)])
    assert "model.0.weight" in finding.title
    assert finding.where.line == 12
    broken = loss(2.1, 2.1, count=6, nonfinite=5, nonfinite_step=6)
    assert found(rule, parameters=[weight(14.0)], losses=[broken])
    stuck = head("cross_entropy", target=classes(0.12, 10, constant=2.3))
    assert found(rule, parameters=[weight(3.0)], heads=[stuck])


def test_numbers_that_broke_come_as_words_from_a_saved_case() -> None:
    broken = loss(2.1, 2.1, count=3, nonfinite=5, nonfinite_step=3)
    words = {"moves": [[0, 70.0], [1, "inf"], [2, "nan"]], "weights": [5.0, 75.0, "inf"]}
    thrown = from_plain(Parameter, {**to_plain(weight(14.0)), **words})
    (finding,) = found(learning_rate_too_high.RULE, parameters=[thrown], losses=[broken])
    assert "14 times" in finding.title


def test_large_steps_that_do_no_harm() -> None:
    rule = learning_rate_too_high.RULE
    assert found(rule, parameters=[weight(14.0)], losses=[loss(2.1, 0.1)]) == [], "it learns"
    assert found(rule, parameters=[weight(14.0, size=1e-4)], losses=[loss(2.1, 9.0)]) == [], "began at zero"
    assert found(rule, parameters=[weight(14.0, shape=[512])], losses=[loss(2.1, 9.0)]) == [], "gains and biases"
    assert found(rule, parameters=[weight(1e-3)], losses=[loss(2.1, 9.0)]) == []


def swinging(level: float = 1.2) -> Loss:
    values = [level + (0.5 if n % 2 else -0.4) for n in range(200)]
    return loss(1.5, level, first=values[:32], recent=values[-32:])


def test_updates_that_undo_each_other() -> None:
    back = optimizer(2.0, cosines=[-0.7] * 48)
    (finding,) = found(loss_oscillates.RULE, optimizers=[back], losses=[swinging()])
    assert "-0.70" in finding.evidence[0]
    assert found(loss_oscillates.RULE, optimizers=[optimizer()], losses=[swinging()]) == [], "noise of batches"
    assert found(loss_oscillates.RULE, optimizers=[back], losses=[loss(9.0, 1.0)]) == [], "it came down"
    two = [back, optimizer(number=1)]
    assert found(loss_oscillates.RULE, optimizers=two, losses=[swinging()]) == [], "a GAN"


def test_steps_too_small_to_see() -> None:
    rule = learning_rate_too_low.RULE
    slow: dict[str, Any] = {"optimizers": [optimizer(1e-6)], "parameters": [weight(8e-8, grad=0.4)]}
    (finding,) = found(rule, **slow)
    assert "8.0e-08" in finding.title
    assert found(rule, "running", **slow)
    assert found(rule, **{**slow, "losses": [loss(2.3, 0.5)]}) == [], "it learns"
    assert found(rule, **{**slow, "parameters": [weight(8e-8, grad=1e-6)]}) == [], "the gradient is what is small"
    warming = optimizer(lrs=[(0, 1e-8), (50, 5e-7), (150, 1e-6)])
    assert found(rule, **{**slow, "optimizers": [warming]}) == []
    assert found(rule, optimizers=[optimizer(2e-5, "AdamW")], parameters=[weight(1e-3)]) == [], "fine-tuning"


# --- schedules -----------------------------------------------------------------------------------------------


def schedule(kind: str = "StepLR", steps: int = 200, per_batch: int = 200, **settings: Any) -> Scheduler:
    return Scheduler(kind=kind, site=SITE, steps=steps, per_batch=per_batch, settings=settings)


def stopped(level: float) -> Loss:
    """A loss that falls for four steps and then stands."""
    values = [1.8] * 4 + [level] * 196
    return loss(first=values[:32], points=list(enumerate(values)), last=level)


def test_a_schedule_for_epochs_stepped_at_every_batch() -> None:
    fallen = optimizer(lrs=[(n * 4, 0.05 * 0.1**n) for n in range(20)])
    given: dict[str, Any] = {
        "optimizers": [fallen],
        "schedulers": [schedule(step_size=4, gamma=0.1)],
        "losses": [stopped(1.5)],
    }
    (finding,) = found(scheduler_kills_learning_rate.RULE, **given)
    assert "every batch" in finding.title
    assert finding.where.line == 30
    assert "step 16" in finding.title
    done: dict[str, Any] = {**given, "losses": [stopped(0.01)]}
    assert found(scheduler_kills_learning_rate.RULE, **done) == [], "it had learned by then"
    by_hand: dict[str, Any] = {**given, "schedulers": []}
    assert found(scheduler_kills_learning_rate.RULE, **by_hand) == []


def test_the_end_of_a_schedule_is_meant_to_be_small() -> None:
    rates = [(n, max(1e-9, 0.05 * (1 - n / 200) ** 2)) for n in range(0, 200, 5)]
    cosine: dict[str, Any] = {
        "optimizers": [optimizer(lrs=rates)],
        "schedulers": [schedule("CosineAnnealingLR", T_max=200)],
    }
    assert found(scheduler_kills_learning_rate.RULE, **cosine) == []
    again: dict[str, Any] = {"schedulers": [schedule("CosineAnnealingLR", T_max=10)]}
    assert [f.severity for f in found(scheduler_kills_learning_rate.RULE, **again)] == ["warning"]
    restarts: dict[str, Any] = {"schedulers": [schedule("CosineAnnealingWarmRestarts", T_max=10)]}
    assert found(scheduler_kills_learning_rate.RULE, **restarts) == []


# --- decay, clipping -----------------------------------------------------------------------------------------


def test_decay_that_leaves_nothing() -> None:
    rule = weight_decay_dominates.RULE
    shrinking = weight(0.05, weights=[5.0 * 0.9**n for n in range(40)])
    heavy = optimizer(settings={"lr": 0.1, "weight_decay": 0.5})
    (finding,) = found(rule, optimizers=[heavy], parameters=[shrinking])
    assert "0.5" in finding.title
    assert found(rule, optimizers=[heavy], parameters=[shrinking], losses=[loss(2.3, 0.4)]) == [], "it learns"
    assert found(rule, optimizers=[heavy], parameters=[weight(1e-3)]) == [], "nothing shrinks"
    light = optimizer(settings={"lr": 0.1, "weight_decay": 5e-4})
    assert found(rule, optimizers=[light], parameters=[shrinking]) == []
    apart = optimizer(0.01, "AdamW", settings={"lr": 0.01, "weight_decay": 10.0})
    moved = [(n, 0.1 * 5.0 * 0.9**n) for n in range(40)]
    assert found(rule, optimizers=[apart], parameters=[replace(shrinking, moves=moved)])


def test_clipping_that_sets_every_step() -> None:
    rule = clip_too_tight.RULE
    tight = Clips(calls=200, clipped=200, sum_ratio=1.2e6, hardest=12e3, max_norm=1e-3, site=SITE)
    (finding,) = found(rule, clips=tight)
    assert "6,000 times" in finding.title
    assert found(rule, clips=tight, losses=[loss(2.3, 0.4)]) == [], "it learns"
    assert found(rule, clips=tight, losses=[loss(2.3, 2.0)], optimizers=[optimizer(kind="Adam")]) == [], (
        "Adam undoes it"
    )
    assert found(rule, clips=replace(tight, clipped=20, sum_ratio=1e5)) == [], "now and then"
    assert found(rule, clips=replace(tight, scaled=200)) == [], "scaled gradients are another matter"


# --- still-improving -----------------------------------------------------------------------------------------


def falling(pace: float, count: int = 200) -> Loss:
    values = [40.0 * pace**n + 0.01 * (n % 3) for n in range(count)]
    return loss(first=values[:32], points=list(enumerate(values)), last=values[-1])


def test_a_run_that_ended_while_it_was_falling() -> None:
    (finding,) = found(still_improving.RULE, losses=[falling(0.99)])
    assert finding.severity == "info"
    assert "70 more steps" in finding.evidence[1]
    assert found(still_improving.RULE, "running", losses=[falling(0.99)]) == []
    assert found(still_improving.RULE, losses=[falling(0.9)]) == [], "it has arrived"
    assert found(still_improving.RULE, losses=[loss(2.3, 1.0)]) == [], "it has levelled off"
