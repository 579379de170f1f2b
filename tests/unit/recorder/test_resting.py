"""Where steps are short the hooks rest. The count stays exact, whatever the training does meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = """
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from unstuck.observer.flights import read_flight
from unstuck.observer.gauge import Gauge
from unstuck.recorder import flight, guard, resting, start, stepping

start.start(sys.argv[1])
resting.MIN_STEPS, resting.SHORT_STEP = 200, 1 << 60  # at once, and on any machine
torch.manual_seed(0)
torch.set_num_threads(1)
model, steps, backwards, rested = nn.Linear(4, 1), 0, 0, 0
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(700, 4)), batch_size=1)
original = torch.autograd.backward.__wrapped__
before = flight.path


def outside():
    gauge = Gauge.open(before + ".flight")
    return read_flight(gauge, alive=True)


def train(x, passes=1):
    global steps, backwards, rested
    optimizer.zero_grad()
    for _ in range(passes):
        model(x).sum().backward()
        backwards += 1
    optimizer.step()
    steps += 1
    rested += bool(flight.state[flight.LEFT])


def whole(passes=1):
    for number, (x,) in enumerate(loader):
        assert number % 97 or outside().phase == "between"
        train(x, passes)


def check(resting_now=None):
    assert flight.steps() == steps, (flight.steps(), steps)
    assert not flight.state[flight.LEFT] or outside().step == steps, (outside().step, steps)
    assert flight.state[flight.BACKWARDS] == backwards
    given = sum(known.given() for known in sys.modules["unstuck.recorder.loading"].everything())
    assert given == steps or not resting_now, (given, steps)
    hooked = torch.autograd.backward is not original
    assert resting_now is None or hooked != resting_now
    assert not guard.OFF, guard.OFF


# the shape
check()
stepping.last()
assert outside().step == steps
print("rested", rested)
"""

SHAPES = {
    "whole epochs": "for _ in range(3):\n    whole()\n    check()",
    "left early": """
whole()
for last in (411, 300, 37, 38, 5, 650):
    for number, (x,) in enumerate(loader):
        if number == last:
            break
        train(x)
    check()
""",
    "validation in between": """
for _ in range(3):
    whole()
    with torch.no_grad():
        for (x,) in DataLoader(TensorDataset(torch.randn(90, 4))):
            model(x)
    check()
""",
    "goes on without the loader": """
whole()
batches = iter(loader)
for _ in range(333):
    train(*next(batches))
assert flight.state[flight.LEFT]
for _ in range(200):
    train(torch.randn(1, 4))
check(False)
""",
    "begins to accumulate": """
whole()
for (x,) in loader:
    train(x)
check()
rest = rested
for number, (x,) in enumerate(loader):
    train(x, passes=3)
assert rested - rest < 100
backwards = flight.state[flight.BACKWARDS]  # of those that came while it rested two thirds are not known
""",
    "another optimizer": """
whole()
other = torch.optim.Adam(nn.Linear(2, 2).parameters())
for (x,) in loader:
    train(x)
    other.step()
assert rested < 800
""",
    "fails": """
whole()
try:
    for number, (x,) in enumerate(loader):
        if number == 400:
            raise RuntimeError("no")
        train(x)
except RuntimeError:
    check()
""",
    "forks": """
import os
whole()
for number, (x,) in enumerate(loader):
    train(x)
    if number == 500:
        assert flight.state[flight.LEFT]
        pid = os.fork()
        if not pid:
            steps = backwards = 0
            before = flight.path
            check(False)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
""",
}


FAST = ("left early", "goes on without the loader", "another optimizer")


@pytest.mark.parametrize(
    "shape", [shape if shape in FAST else pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES]
)
def test_count_is_exact(tmp_path: Path, shape: str) -> None:
    script = TRAINING.replace("# the shape", SHAPES[shape])
    ran = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[1]) > 300


LONG_STEPS = """
from unstuck.recorder import dispatch
from unstuck.recorder.hooks import backward

resting.SHORT_STEP, resting.HALF, resting.LONG_STEP = 0, HALF, 1 << 60  # each counts as one that bears reading its loss
losses = dispatch.probe("learning").measured.losses
for _ in range(2):
    for (x,) in loader:
        train(x)
check()
assert rested > 300
backward.last()
losses.settle()
[loss] = losses.series.values()
assert loss.count < steps - rested * 0.4 if HALF else loss.count == steps, (loss.count, steps)
for (x,) in loader:
    if flight.state[flight.LEFT] == 30:
        break
    train(x)
with torch.no_grad():
    model.weight.fill_(float("nan"))
train(x)
train(x)
assert steps - 2 <= loss.nonfinite_step <= (steps - 1 if HALF else steps - 2)
check(False)
"""


@pytest.mark.parametrize("half", [pytest.param("0", marks=pytest.mark.slow), "1 << 60"])
def test_in_longer_steps_each_loss_is_read_or_every_second_one(tmp_path: Path, half: str) -> None:
    script = f"HALF = {half}\n" + TRAINING.replace("# the shape", LONG_STEPS)
    ran = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
