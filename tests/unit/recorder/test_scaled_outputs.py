"""What an activation gives, times numbers that do not learn: how far that reaches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from unstuck.recorder import gpu
from unstuck.recorder.probes.learning import loss_head
from unstuck.recorder.probes.learning.graph_reading import SavedTensors
from unstuck.recorder.probes.learning.loss_head import Head, KnownHead

x = torch.tensor([[-4.0, -2.0], [1.0, 3.0]])
below = torch.tensor([[-6.0, -2.5], [0.5, 3.5]])  # beyond 0 and x, but for the third


@pytest.fixture
def raw() -> Any:
    return torch.zeros(2, 2, requires_grad=True)


def read(loss: Any) -> Head:
    head = loss_head.find(loss.grad_fn, SavedTensors())
    assert head is not None
    return head


def reach(loss: Any) -> tuple[float, float]:
    """Share of the targets that are beyond, and the mean square of what is missed."""
    head = read(loss)
    known = KnownHead(head, None, None, gpu.Copies())
    assert head.given is not None
    known.targets.take(head.given.target, head.given.prediction, factor=head.given.factor)
    beyond = known.targets.record().beyond["scaled"]
    return beyond.share, beyond.floor


def test_targets_that_a_product_cannot_reach(raw: Any) -> None:
    missed = (4.0 + 0.25 + 0.25) / 4
    assert reach(F.mse_loss(raw.sigmoid() * x, below)) == pytest.approx((0.75, missed))
    assert reach(((below - x * raw.sigmoid()) ** 2).mean()) == pytest.approx((0.75, missed), abs=1e-3)
    assert reach(F.mse_loss((raw.tanh() * x.abs()).reshape(4), below.reshape(4))) == pytest.approx((0.75, missed))
    assert reach(F.mse_loss(3 * (raw.sigmoid() * x), below))[0] == 0.0
    assert reach(F.mse_loss(raw.softmax(1) * x[:, :1], torch.ones(2, 2)))[0] == pytest.approx(0.5)


def test_what_has_no_bounds(raw: Any) -> None:
    learned = torch.ones(2, 2, requires_grad=True)
    for product in (raw * x, raw.relu() * x, raw.sigmoid() * learned, raw.sigmoid() * x + 1, raw.sigmoid()):
        assert not read(F.mse_loss(product, below)).scaled
