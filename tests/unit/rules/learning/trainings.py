"""Trainings made by hand: their losses, loss functions, optimizers and weights."""

from __future__ import annotations

from typing import Any

from unstuck.model import Case, Finding, Outcome
from unstuck.recorder.records.learning import Learning, Loss, LossHead, LossOp, Optimizer, Parameter, Targets
from unstuck.rules.rule import Rule

SITE = ("/project/train.py", 30, "main")
LINE = ("/project/train.py", 28, "main")
MADE = ("/project/train.py", 12, "")


def loss(begin: float = 2.3, end: float = 2.3, count: int = 200, **more: Any) -> Loss:
    values = [begin + (end - begin) * min(1.0, n / (0.5 * count)) for n in range(count)]
    plain = {"site": SITE, "count": count, "first": values[:32], "points": list(enumerate(values)), "last": end}
    return Loss(**{**plain, "recent": values[-32:], **more})


def head(op: LossOp, **more: Any) -> LossHead:
    plain: dict[str, Any] = {"op": op, "times": 40, "site": LINE, "called": SITE, "shape": [32, 10], "dim": 1}
    return LossHead(**{**plain, "bare": True, "signed": True, **more})


def numbers(low: float, high: float, mean: float, sd: float, **more: Any) -> Targets:
    plain = {"batches": 40, "count": 1280, "dtype": "float32", "shape": [32, 1], "integer": False}
    return Targets(**{**plain, "min": low, "max": high, "mean": mean, "sd": sd, "constant": sd**2, **more})


def classes(majority: float, count: int = 2, constant: float = 0.5) -> Targets:
    rest = (1 - majority) / (count - 1)
    return Targets(count=1280, classes=count, majority=majority, minority=rest, of=0, constant=constant)


def optimizer(lr: float = 0.1, kind: str = "SGD", **more: Any) -> Optimizer:
    plain: dict[str, Any] = {"number": 0, "kind": kind, "steps": 200, "lrs": [(0, lr)], "settings": {"lr": lr}}
    return Optimizer(**{**plain, "cosines": [0.3] * 48, "site": MADE, **more})


def weight(moved: float, grad: float = 0.1, size: float = 5.0, **more: Any) -> Parameter:
    plain: dict[str, Any] = {"name": "model.0.weight", "module": "Linear", "shape": [32, 16], "numel": 512, "owner": 0}
    plain["grads"], plain["weights"] = [(n, grad) for n in range(40)], [size] * 40
    plain["moves"] = [(n, moved * size) for n in range(40)]
    return Parameter(**{**plain, "seen": 40, "in_graph": 40, **more})


def case(*heads: LossHead, outcome: Outcome = "finished", **more: Any) -> Case:
    plain: dict[str, Any] = {"steps": 200, "backwards": 200, "clears": 200, "losses": [loss()], "heads": list(heads)}
    return Case(root=7, outcome=outcome, learnings=(Learning(**{**plain, "pid": 7, **more}),))


def found(rule: Rule, *heads: LossHead, outcome: Outcome = "finished", **more: Any) -> list[Finding]:
    """The findings on a training that is healthy but for what is passed."""
    given: dict[str, Any] = {"optimizers": [optimizer()], "parameters": [weight(1e-3)], **more}
    return [result for result in rule.decide(case(*heads, outcome=outcome, **given)) if isinstance(result, Finding)]
