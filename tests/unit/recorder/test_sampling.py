"""Which steps are sampled: one in thirty-two on average, wherever in its pass a step is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unstuck.recorder import flight

STEPS = 8000


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The numbers of the sampled steps of a run, without the first ones."""
    before = list(flight.state)
    flight.open_file(str(tmp_path_factory.mktemp("flight")), forked=False)
    numbers = []
    for number in range(1, STEPS + 1):
        if flight.state[flight.FULL] and number > flight.FULL_STEPS:
            numbers.append(number)
        flight.state[flight.STEPS] += 1
        if flight.state[flight.FULL] or flight.sample_due():
            flight.turn()
    yield numbers
    flight.let_go()
    flight.state[:] = before


def test_one_in_thirty_two(sampled: list[int]) -> None:
    assert len(sampled) == pytest.approx(STEPS / 32, rel=0.1)


@pytest.mark.parametrize("length", [2, 4, 8, 16, 32, 33, 48, 64, 100])
def test_the_first_step_of_a_pass_is_met_no_more_often_than_others(sampled: list[int], length: int) -> None:
    first = sum(number % length == 1 for number in sampled)
    assert first <= 2 * len(sampled) / length + 2


BY_HAND = """
import sys

import torch
from torch import nn

from unstuck.recorder import dispatch, flight, governor, start

start.start(sys.argv[1])
governor.ADVANCE = 60.0  # whatever the machine has to do besides
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
rows = torch.randn(256, 8)
observed = [0]
for step in range(600):
    loss = (model(rows) - rows[:, :1]).square().mean()
    UPDATE
    observed.append(dispatch.probe("learning").measured.observed.observed)
early = observed[flight.FULL_STEPS]
assert flight.steps() >= 599 and early >= 3 and observed[-1] >= early + 3, (flight.steps(), early, observed[-1])
"""
UPDATES = {
    "backward": """
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= 0.01 * weight.grad
    """,
    "grad": """
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    for weight, gradient in zip(model.parameters(), gradients):
        weight.data.sub_(0.01 * gradient)
    """,
}


@pytest.mark.parametrize("update", UPDATES)
def test_modules_are_observed_after_the_first_steps_where_updates_are_made_by_hand(tmp_path: Path, update: str) -> None:
    script = BY_HAND.replace("    UPDATE\n", UPDATES[update].lstrip("\n"))
    ran = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
