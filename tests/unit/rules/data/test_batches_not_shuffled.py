"""batches-not-shuffled, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

import torch

from tests.unit.rules.data.tables import LOADER, about, findings, normal
from unstuck.recorder.records.learning import Learning, Loss, LossHead, Targets
from unstuck.rules.data.batches_not_shuffled import _jumps
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
