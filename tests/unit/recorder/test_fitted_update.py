"""The settings of an update that the script writes out itself, from the move it made."""

from __future__ import annotations

import pytest
import torch

from unstuck.recorder import gpu
from unstuck.recorder.probes.learning import fitted_update
from unstuck.recorder.probes.learning.optimizers import Optimizers
from unstuck.recorder.probes.learning.parameters import Parameters
from unstuck.recorder.probes.learning.updates import Updates


@pytest.mark.parametrize(("rate", "decay", "momentum"), [(0.1, 0.0, 0.0), (0.05, 6.0, 0.0), (0.02, 0.01, 0.9)])
def test_what_was_set(rate: float, decay: float, momentum: float) -> None:
    torch.manual_seed(0)
    weight, velocity, before = torch.randn(2000), torch.zeros(2000), None
    for _ in range(3):
        gradient = 0.1 * torch.randn(2000)
        velocity = momentum * velocity + gradient + decay * weight
        moved = (weight - rate * velocity) - weight
        fit = fitted_update.fit(moved.double(), gradient.double(), weight.double(), before)
        weight, before = weight + moved, moved
    assert fit is not None
    assert fit.rate == pytest.approx(rate, rel=1e-3)
    assert fit.decay == pytest.approx(decay, abs=1e-3)
    assert fit.momentum == pytest.approx(momentum, abs=1e-3)


def test_a_step_that_single_precision_hardly_shows() -> None:
    torch.manual_seed(0)
    weight, gradient = 0.3 * torch.randn(5000), 0.05 * torch.randn(5000)
    moved = (weight - 1e-6 * gradient) - weight
    fit = fitted_update.fit(moved.double(), gradient.double(), weight.double(), None)
    assert fit is not None
    assert fit.rate == pytest.approx(1e-6, rel=0.1)


def test_other_kinds_of_updates() -> None:
    torch.manual_seed(0)
    weight, gradient = torch.randn(500).double(), torch.randn(500).double()
    assert fitted_update.fit(-1e-3 * gradient.sign(), gradient, weight, None) is None
    assert fitted_update.fit(gradient, gradient, weight, None) is None, "it climbs"
    assert fitted_update.fit(torch.zeros(500).double(), gradient, weight, None) is None


def test_a_gradient_that_is_gone_moves_nothing_at_any_rate() -> None:
    weight = torch.rand(500).double() + 0.5
    gradient, single, half = torch.randn(500).double(), 1.2e-7, 7.8e-3
    assert fitted_update.would_move(1e-3, gradient, weight, single)
    assert not fitted_update.would_move(0.1, 1e-8 * gradient, weight, single)
    assert not fitted_update.would_move(1e-3, gradient, weight, half)
    assert not fitted_update.would_move(0.0, gradient, weight, single)


def test_a_rate_is_gone_only_where_no_step_between_moves_the_weights_either() -> None:
    """Of two models that train in turns, every step that is followed may be one of the other's."""
    copies = gpu.Copies()
    parameters = Parameters(copies)
    known = Optimizers(parameters, copies)
    updates, entry = Updates(parameters, known, copies), known.known(None)
    weight = torch.nn.Parameter(torch.ones(4))
    entry.note_fit(fitted_update.Fit(0.1, 0.0, 0.0), 1)

    def followed(step: int) -> None:
        updates._gradients = {id(weight): torch.ones(4)}
        updates._fit(entry, [weight], [weight.detach().clone()], [torch.zeros(4)], step)

    followed(32)
    with torch.no_grad():
        weight += 1
    followed(64)
    assert entry.lrs == [(1, 0.1)]
    followed(96)
    assert entry.lrs == [(1, 0.1), (96, 0.0)]
