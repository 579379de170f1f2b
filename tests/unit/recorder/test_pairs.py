"""Inputs that come again, with their own target or with another one."""

from __future__ import annotations

import torch

from unstuck.recorder.probes.data.pairs import Pairs


def test_inputs_that_come_again() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(40, 5), torch.arange(40.0).unsqueeze(1)
    together, apart = Pairs(), Pairs()
    for _ in range(3):
        order = torch.randperm(40)
        together.take(x[order], y[order])
        apart.take(x[order], y)
    assert (together.record().again, together.record().changed) == (80, 0)
    assert apart.record().again == 80
    assert apart.record().changed > 70
    assert apart.record().example is not None


def test_the_same_input_twice_in_one_batch_is_no_matter() -> None:
    pairs = Pairs()
    pairs.take(torch.arange(5.0).repeat(20, 1), torch.arange(20.0).unsqueeze(1))
    assert pairs.record().again == 0


def test_rows_that_are_the_same_by_chance_are_not_recognized() -> None:
    few = torch.tensor([[0.0, 1.0, 2.0, 0.0, 1.0]]).repeat(8, 1)
    pairs = Pairs()
    for _ in range(3):
        pairs.take(few, torch.rand(8, 1))
    assert pairs.record().again == 0
    for _ in range(3):
        pairs.take(torch.cat((few, torch.full((8, 1), 3.0)), 1), torch.rand(8, 1))
    assert (pairs.record().again, pairs.record().changed) == (16, 16)
