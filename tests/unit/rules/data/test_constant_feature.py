"""constant-feature, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

import torch

from tests.unit.rules.data.tables import about, findings, normal
from unstuck.model import Case
from unstuck.recorder.records.data import DataSeen, LoaderData, TextsSeen
from unstuck.recorder.records.learning import Learning, Loss, LossHead, Targets
from unstuck.rules.data import constant_feature


def test_constant_columns() -> None:
    x = normal()
    x[:, 3] = 4.5
    assert findings(about(x))["constant-feature"].title.startswith("Column 3")
    x[:, 3] = 0.0
    assert findings(about(x)) == {}, "of a sample only: a rare 1 may come"
    assert list(findings(about(x), "scan")) == ["constant-feature"]
    x[:, 3] = float("nan")
    assert "NaN" in findings(about(x))["constant-feature"].title


def severities(told: LoaderData, end: float = 0.69) -> list[str]:
    """Of the findings about a binary training whose loss ends there."""
    site = ("/project/train.py", 20, "main")
    loss = Loss(site=site, count=500, first=[0.7] * 5, last=end, points=[(step, end) for step in range(0, 500, 5)])
    head = LossHead(op="bce_logits", site=site, called=site, times=9, bare=True)
    head = replace(head, target=Targets(count=999, constant=0.69))
    learning = Learning(pid=7, at=1.0, steps=500, losses=[loss], heads=[head])
    case = Case(data=(DataSeen(pid=7, at=1.0, loaders=[told]),), learnings=(learning,), outcome="finished")
    return [finding.severity for finding in constant_feature.decide(case)]


def test_all_inputs_are_the_same() -> None:
    x, y = torch.zeros(1000, 8), (torch.rand(1000) < 0.5).float()
    x[4, 0] = x[5, 3] = 1.0
    assert severities(about(x, y)) == ["error"], "truncated to whole numbers"
    assert severities(about(x, y), end=0.3) == [], "something else tells the samples apart"
    assert severities(about(torch.full((1000, 3, 9, 9), 0.5), y)) == ["error"]
    windows = torch.zeros(1000, 20, 2)
    windows[7, 3, 1] = 1.0
    assert severities(about(windows, y)) == ["error"], "of zeros and ones, but no mask: there is nothing else"


def test_sparse_inputs_are_not_the_same() -> None:
    y = (torch.rand(1000) < 0.5).float()
    codes = torch.arange(1000)
    assert severities(about(torch.eye(40)[codes % 40], y)) == []
    assert severities(about(torch.eye(900)[codes % 900], y)) == [], "more columns than are looked at"
    points = torch.zeros(1000, 1, 16, 16)
    points.view(1000, 256)[codes, codes % 256] = 1.0
    assert severities(about(points, y)) == [], "one pixel of each picture says where"
    assert severities(replace(about(torch.zeros(1000, 4), y), texts=[TextsSeen(path="[2]", lines=1000)])) == [], (
        "texts come with it"
    )
    assert severities(about(normal(), y)) == []
