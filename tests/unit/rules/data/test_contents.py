"""Which data the rules judge, and which they leave alone."""

from __future__ import annotations

import torch

from tests.unit.rules.data.tables import about, findings, normal, record
from unstuck.recorder.probes.data import statistics_report
from unstuck.recorder.probes.data.statistics import Gathered
from unstuck.recorder.records.data import LoaderData


def test_plain_data_is_left_alone() -> None:
    assert findings(about(normal(), torch.arange(1000) % 3)) == {}
    assert findings(about(normal(), torch.arange(1000) % 3), "scan") == {}


def test_a_loader_that_does_not_train_is_left_alone() -> None:
    assert findings(about(100 * normal(), torch.arange(1000) % 3, trains=False)) == {}


def test_token_ids_and_masks_are_left_alone() -> None:
    ids = torch.randint(0, 30000, (500, 12), generator=torch.Generator().manual_seed(3))
    bias = torch.zeros(500, 12)
    bias[:, 7:] = float("-inf")
    gathered = Gathered()
    gathered.take({"ids": ids, "bias": bias, "label": torch.arange(500) % 2}, None)
    assert findings(record(gathered)) == {}


def test_numbers_to_the_loss_are_no_classes() -> None:
    g = torch.Generator().manual_seed(4)
    counts = torch.poisson(torch.full((1000,), 2.0), generator=g)
    assert findings(about(normal(), counts)) == {}, "a float that is neither 0 nor 1"
    rare = (torch.arange(1000) % 30 == 0).long()
    assert findings(about(normal(), rare, target_op="mse")) == {}
    assert list(findings(about(normal(), rare, target_op="cross_entropy"))) == ["labels-imbalanced"]
    assert list(findings(about(normal(), rare.float(), target_op="bce_logits"))) == ["labels-imbalanced"]
    sorted_counts = counts.long().sort().values
    assert findings(about(normal(), sorted_counts, batch=25, target_op="squared")) == {}


def test_batches_that_come_from_no_loader() -> None:
    gathered = Gathered(has_target=False)
    for label in range(4):
        for _ in range(5):
            x = 1000 + 80 * normal(25, seed=label)
            gathered.take(x, None, open_=True)
            gathered.take_target(torch.full((25,), label), "cross_entropy", None)
    sliced = statistics_report.filled(LoaderData(site=("/project/train.py", 9, "main")), gathered, trains=True)
    found = findings(sliced)
    assert sorted(found) == ["batches-not-shuffled", "unscaled-input"]
    assert "DataLoader" not in found["batches-not-shuffled"].fix.text
    assert all("sampler" not in line for line in found["batches-not-shuffled"].evidence)
    assert "batches that the model got" in found["unscaled-input"].evidence[0]
    assert found["unscaled-input"].where.line == 9
