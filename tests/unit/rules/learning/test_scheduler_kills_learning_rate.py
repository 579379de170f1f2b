"""Schedulers that end the training early."""

from __future__ import annotations

from typing import Any

from tests.unit.rules.learning.trainings import SITE, found, loss, optimizer
from unstuck.model import Finding
from unstuck.recorder.records.learning import Loss, Scheduler
from unstuck.rules.learning import scheduler_kills_learning_rate


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
    (finding,) = found(scheduler_kills_learning_rate.RULE, **by_hand)
    assert "the script's own schedule" in finding.title
    nothing_moves: dict[str, Any] = {**by_hand, "optimizers": [optimizer(lrs=[(1, 0.1), (16, 0.01), (40, 0.0)])]}
    (finding,) = found(scheduler_kills_learning_rate.RULE, **nothing_moves)
    assert "from 0.1 to 0 by step 40 and is 0 now" in finding.evidence[0]


def test_a_plateau_that_is_one() -> None:
    """ReduceLROnPlateau begins to cut where the loss has come to rest, far below its beginning: as it should."""
    rates = [(0, 0.05), *((70 + 10 * n, 0.05 * 0.1**n) for n in range(1, 6))]

    def rules(values: list[float], per_batch: int = 0, mode: str = "min") -> list[str]:
        course = loss(first=values[:32], points=list(enumerate(values)), last=values[-1])
        plateau = schedule("ReduceLROnPlateau", steps=40, per_batch=per_batch, mode=mode, patience=3)
        given: dict[str, Any] = {"optimizers": [optimizer(lrs=rates)], "schedulers": [plateau], "losses": [course]}
        return [finding.rule for finding in found(scheduler_kills_learning_rate.RULE, **given)]

    rested = [max(0.1, 1.2 * 0.93**n) for n in range(200)]
    still_falling = [max(0.1, 1.2 * 0.98 ** min(n, 85)) for n in range(200)]
    assert rules(rested) == []
    assert rules(rested, per_batch=40) == [scheduler_kills_learning_rate.RULE.name]
    assert rules(rested, mode="max") == [scheduler_kills_learning_rate.RULE.name], "a loss would have to rise"
    assert rules(still_falling) == [scheduler_kills_learning_rate.RULE.name]
    assert rules([1.2] * 200) == [scheduler_kills_learning_rate.RULE.name], "nothing was learned by then"


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


def test_a_warm_up_that_starts_over_in_each_epoch() -> None:
    rates = [(n, 2.5e-5 * (n % 40 + 1)) for n in [*range(64), *range(96, 500, 31)]]
    (finding,) = found(scheduler_kills_learning_rate.RULE, optimizers=[optimizer(lrs=rates)])
    assert "starts over" in finding.title
    learned: dict[str, Any] = {"optimizers": [optimizer(lrs=rates)], "losses": [loss(2.3, 0.2)]}
    assert found(scheduler_kills_learning_rate.RULE, **learned) == []
    once = [(n, 1e-3 * min(n + 1, 500 - n)) for n in range(500)]
    assert found(scheduler_kills_learning_rate.RULE, optimizers=[optimizer(lrs=once)]) == [], "one cycle"


def test_a_function_that_returns_the_rate_and_not_a_factor() -> None:
    def said(rates: list[tuple[int, float]], base: float = 3e-3, kind: str = "LambdaLR", **more: Any) -> list[Finding]:
        plain = {"optimizers": [optimizer(kind="AdamW", lrs=rates, settings={"initial_lr": base})]}
        return found(scheduler_kills_learning_rate.RULE, **{**plain, "schedulers": [schedule(kind)], **more})

    rates = [(n, 9e-6 * min((n + 1) / 20, (20 / (n + 1)) ** 0.5)) for n in range(0, 200, 5)]
    (finding,) = said(rates)
    assert "at most 0.0029" in finding.evidence[0]
    assert said([(0, 1e-6), (50, 9e-6)]), "constant after its warm-up"
    assert not said([(0, 1e-6), (50, 2e-6), (150, 9e-6)]), "its warm-up may still go on"
    assert not said([(0, 9e-6)], outcome="running"), "so may it here"
    assert not said(rates, base=1e-5), "a rate for fine-tuning, and a factor"
    assert not said([(n, 100 * rate) for n, rate in rates], base=1.0), "a rate with a base of 1 is meant so"
    assert not said(rates, kind="OneCycleLR")
    assert not said(rates, losses=[loss(2.3, 0.2)]), "it learns"
