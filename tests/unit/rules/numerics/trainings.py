"""Trainings made by hand, for the rules on numerics."""

from __future__ import annotations

from typing import Any

from unstuck.model import Case, Finding, Outcome
from unstuck.recorder.records.learning import Learning, Loss, Optimizer, Parameter
from unstuck.recorder.records.numerics import BadTensor, Birth, BrokenParameter, Operation, Why
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


def case(outcome: Outcome = "finished", **more: Any) -> Case:
    sgd = Optimizer(number=0, kind="SGD", steps=100, lrs=[(0, 0.1)])
    plain: dict[str, Any] = {"steps": 100, "backwards": 100, "losses": [loss()], "optimizers": [sgd], "clears": 100}
    return Case(outcome=outcome, learnings=(Learning(**{**plain, "pid": 5, **more}),))


def found(rule: Rule, outcome: Outcome = "finished", **more: Any) -> list[Finding]:
    return [result for result in rule.decide(case(outcome, **more)) if isinstance(result, Finding)]
