"""Trainings made by hand: who owns, reaches, clears and steps their parameters."""

from __future__ import annotations

from math import prod
from typing import Any

from unstuck.model import Case, Finding, Outcome
from unstuck.recorder.records.learning import Activation, BuiltOptimizer, Learning, Loss, Parameter
from unstuck.rules.rule import Rule

PID = 7
SITE = ("train.py", 30, "main")
BUILT_AT = ("train.py", 20, "main")


def parameter(name: str = "model.fc.weight", shape: tuple[int, ...] = (8, 8), **more: Any) -> Parameter:
    """One that an optimizer has, that gets gradients and moves."""
    plain: dict[str, Any] = {"name": name, "module": "Linear", "shape": list(shape), "numel": prod(shape), "owner": 0}
    plain |= {"grads": [(n, 0.1) for n in range(40)], "weights": [1.0] * 40, "moves": [(n, 0.01) for n in range(40)]}
    return Parameter(**{**plain, "seen": 40, "in_graph": 40, "held": 0, "called": 3, **more})


def built(**more: Any) -> BuiltOptimizer:
    known: dict[str, Any] = {"kind": "Adam", "site": BUILT_AT, "steps": 300, "clears": 300, "checked": 60}
    return BuiltOptimizer(**{**known, "parameters": 4, "trainable": 4, "in_graph": 4, "moved": 4, **more})


def activation(**more: Any) -> Activation:
    known: dict[str, Any] = {"place": 0, "kind": "relu", "name": "model.0", "shape": [32, 40], "batches": 80}
    return Activation(**{**known, "units": 40, "zero": 0.5, "late_batches": 45, **more})


def case(*parameters: Parameter, outcome: Outcome = "running", **more: Any) -> Case:
    loss = Loss(site=SITE, count=300, first=[1.0], points=[(0, 1.0)], last=1.0)
    plain: dict[str, Any] = {"steps": 300, "backwards": 300, "losses": [loss], "clears": 300, "built": [built()]}
    plain |= {"parameters": list(parameters) or [parameter()], "observed": 5}
    return Case(root=PID, learnings=(Learning(**{**plain, "pid": PID, **more}),), outcome=outcome)


def said(rule: Rule, on: Case) -> list[Finding]:
    return [word for word in rule.decide(on) if isinstance(word, Finding)]
