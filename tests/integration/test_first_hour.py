"""The first hour: silence can be told from blindness, and each demo is explained."""

from __future__ import annotations

import re

import pytest

from tests.conftest import Runner

TRAINS = """
import torch
weight = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(90):
    optimizer.zero_grad()
    (weight - 1).pow(2).mean().backward()
    optimizer.step()
"""


def say(unstuck: Runner, *words: str) -> list[str]:
    _, said = unstuck.start(*words).communicate(timeout=120)
    return str(said, "utf-8").splitlines()


def test_on_request_a_silent_run_says_what_was_watched(unstuck: Runner) -> None:
    (unstuck.folder / "train.py").write_text(TRAINS)
    assert say(unstuck, "run", "train.py") == []
    watched, last = say(unstuck, "run", "-v", "train.py")
    assert re.fullmatch(r"unstuck: watched 90 steps in \S+ s, nothing found", watched)
    assert re.fullmatch(r"next: unstuck report \S+", last)


def test_a_script_without_steps_is_not_said_to_be_watched(unstuck: Runner) -> None:
    (unstuck.folder / "empty.py").write_text("print('no training')\n")
    said = say(unstuck, "run", "-v", "empty.py")
    assert said[0].startswith("unstuck: saw no training step in ")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("nan-loss", "nonfinite-born"),
        pytest.param("never-ends", "stop-condition-never-met", marks=pytest.mark.slow),
        pytest.param("stuck-sample", "sample-spins", marks=pytest.mark.slow),
    ],
)
def test_a_demo_is_explained(unstuck: Runner, name: str, rule: str) -> None:
    said = say(unstuck, "demo", name)
    assert f"[{rule}]" in said[-2]
    assert said[-1].startswith("next: unstuck report ")
