"""labels-imbalanced, on Cases made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.unit.rules.data.tables import about, findings, labels, normal, record
from unstuck.recorder.probes.data.statistics import Gathered


def test_balance_of_the_labels() -> None:
    y = (torch.arange(1000) % 30 == 0).long()
    assert list(findings(about(normal(), y))) == ["labels-imbalanced"]
    assert findings(about(normal(), (torch.arange(1000) % 5 == 0).long())) == {}


def test_batches_of_one_class_say_nothing_of_the_balance() -> None:
    """Of data that is sorted some batches were read: more of one class by chance."""
    y = torch.cat((torch.zeros(900), torch.arange(1, 4).repeat_interleave(33), torch.full((1,), 3))).long()
    few = about(normal(), y, batch=25)
    few = replace(few, labels=replace(labels(few), entropy=1.0, batch_entropy=0.02))
    assert "labels-imbalanced" not in findings(few)
    assert "labels-imbalanced" in findings(few, "scan")


@pytest.mark.parametrize("none", [-1, -100])
def test_what_is_no_label_is_not_counted(none: int) -> None:
    y = torch.arange(1000) % 2
    y[torch.arange(1000) % 20 > 0] = none
    y[:20] = torch.arange(20) % 2
    assert findings(about(normal(), y)) == {}
    assert labels(about(normal(), y)).classes == 2


def test_minus_one_is_a_class_beside_one() -> None:
    y = 1 - 2 * (torch.arange(1000) % 30 == 0).long()
    assert "Class 1 is" in findings(about(normal(), y))["labels-imbalanced"].title


def test_a_label_that_the_loss_ignores_is_not_counted() -> None:
    gathered = Gathered()
    gathered.targets["[1]"] = ("cross_entropy", 9.0)
    y = torch.arange(1000) % 2
    y[::3] = 9
    gathered.take([normal(), y], None)
    assert {value for value, _ in labels(record(gathered)).counts} == {0.0, 1.0}
