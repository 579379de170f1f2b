"""Which global generators were seeded and not drawn from since."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy
import pytest
import torch

from unstuck.recorder.probes.data.global_generators import fresh


@pytest.fixture(autouse=True)
def _as_they_were() -> Iterator[None]:
    before = torch.get_rng_state(), numpy.random.get_state(), random.getstate()
    torch.rand(1), numpy.random.rand(), random.random()
    yield
    torch.set_rng_state(before[0])
    numpy.random.set_state(before[1])
    random.setstate(before[2])


def test_those_that_were_just_seeded() -> None:
    assert fresh() == set()
    torch.manual_seed(3)
    assert fresh() == {"torch"}
    numpy.random.seed(3)
    random.seed(3)
    assert fresh() == {"torch", "numpy", "random"}


def test_a_number_was_drawn() -> None:
    torch.manual_seed(3), numpy.random.seed(3), random.seed(3)
    torch.randn(1), numpy.random.rand(), random.random()
    assert fresh() == set()


def test_as_many_as_a_generator_makes_at_a_time() -> None:
    torch.manual_seed(3)
    torch.randint(9, (624,))
    random.seed(3)
    for _ in range(624):
        random.getrandbits(32)
    assert fresh() == set()


def test_asking_draws_nothing() -> None:
    torch.manual_seed(3), numpy.random.seed(3), random.seed(3)
    drawn = [(torch.rand(1).item(), numpy.random.rand(), random.random())]
    torch.manual_seed(3), numpy.random.seed(3), random.seed(3)
    fresh()
    drawn.append((torch.rand(1).item(), numpy.random.rand(), random.random()))
    assert drawn[0] == drawn[1]
