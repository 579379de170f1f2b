"""batches-not-shuffled, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from tests.unit.rules.data.tables import LOADER, about, findings, normal
from unstuck.model import Case, Finding
from unstuck.recorder.records.data import DataSeen, LoaderData
from unstuck.recorder.records.learning import Learning, Loss, LossHead, Targets
from unstuck.rules.data.batches_not_shuffled import RULE, _jumps
from unstuck.rules.data.contents import Data


def test_order_of_the_batches() -> None:
    y = torch.arange(4).repeat_interleave(250)
    told = about(normal(), y, batch=25)
    assert list(findings(told)) == ["batches-not-shuffled"]
    assert findings(told)["batches-not-shuffled"].severity == "info"
    assert findings(replace(told, own_batches=True)) == {}
    mixed = y[torch.randperm(1000, generator=torch.Generator().manual_seed(0))]
    assert findings(about(normal(), mixed, batch=25)) == {}


def jumps(values: list[float]) -> str:
    site = ("train.py", 7, "main")
    loss = Loss(site=site, count=len(values), points=list(enumerate(values)))
    head = LossHead(op="cross_entropy", called=site, target=Targets(constant=1.386, count=900), bare=True)
    return _jumps(Data(7, LOADER, learning=Learning(losses=[loss], heads=[head])))


def test_a_loss_that_comes_back_to_that_of_a_constant_prediction() -> None:
    saw = [1.42, 1.2, 0.9, 0.8]
    assert jumps(saw * 40)
    assert jumps(saw * 8) == "", "too few steps"
    assert jumps([0.7 * value for value in saw] * 40) == "", "it learns all the same"
    assert jumps([1.38, 1.4] * 80) == "", "it does not fall"
    assert jumps([1.42] * 100 + [0.8] * 60) == "", "it comes down and stays there"


def sorted_targets(values: list[float], mixed: float, **more: Any) -> list[Finding]:
    """A training without a loader whose loss goes like this, with targets that vary so little within a batch."""
    site = ("train.py", 7, "main")
    loss = Loss(site=site, count=len(values), first=values[:32], points=list(enumerate(values)), last=values[-1])
    known: dict[str, Any] = {"constant": 1.386, "count": 900, "mixed": mixed, "mixed_batches": 40, "mixed_size": 50}
    head = LossHead(op="mse", called=site, target=Targets(**known, **more), bare=True)
    seen = DataSeen(pid=7, loaders=[LoaderData(trains=True, site=site)])
    training = Learning(pid=7, losses=[loss], heads=[head])
    case = Case(root=7, outcome="finished", data=(seen,), learnings=(training,))
    return [found for found in RULE.decide(case) if isinstance(found, Finding)]


def test_targets_of_one_kind_in_each_batch_without_a_loader() -> None:
    saw = [1.42, 1.2, 0.9, 0.8]
    (finding,) = sorted_targets(saw * 40, 0.01)
    assert "small range" in finding.title
    assert finding.severity == "warning"
    (finding,) = sorted_targets([9.0, 5.0, 1.2, 0.8] * 40, 0.01, classes=10)
    assert "10 classes" in finding.title
    assert finding.severity == "error", "on average it is worse than a constant prediction"
    assert sorted_targets(saw * 40, 0.9) == []
    assert sorted_targets([0.4] * 160, 0.01) == [], "a series in its order"
