"""Clipping without `clip_grad_norm_`: what its line reads like, and what is measured there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.unit.recorder.test_learning_probe import Run
from unstuck.recorder import flight, governor
from unstuck.recorder.probes.learning import clip_lines
from unstuck.recorder.records.numerics import Clips

Gradients = list[Any]
LIMIT = 1e-3


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    torch.manual_seed(0)
    monkeypatch.setattr(flight, "state", [1] + [0] * (len(flight.state) - 1))
    monkeypatch.setattr(governor, "ADVANCE", 60.0)  # whatever the machine has to do besides
    monkeypatch.setattr(governor.governor, "spent", 0.0)
    monkeypatch.setattr(governor.governor, "by_probe", {})
    made = Run()
    yield made
    made.probe.remove()


def clipped(gradients: Gradients) -> Gradients:
    total = torch.cat([each.flatten() for each in gradients]).norm()
    by = min(1.0, LIMIT / (total.item() + 1e-6))
    return [each * by for each in gradients]


def train(run: Run, made: Callable[[Gradients], Gradients], factor: float = 1.0, rate: float = 1e-6) -> Clips | None:
    x, weight = torch.randn(32, 4), torch.randn(4, 1, requires_grad=True)
    for step in range(60):
        run.backward((x @ weight).square().mean() * factor)
        run.probe.after_backward()
        assert step < 16 or sys.getprofile() is not None or made is not clipped
        with torch.no_grad():
            weight -= rate * made([weight.grad])[0]
        weight.grad = None
        flight.state[flight.STEPS] += 1
        run.probe.after_step(None, step + 1)
        assert sys.getprofile() is None
    return run.probe.measured.record().clips


def test_norm_and_limit_are_read_as_the_function_returns(run: Run) -> None:
    clips = train(run, clipped)
    assert clips is not None
    assert clips.site is not None
    assert (clips.calls, clips.clipped, clips.scaled, clips.max_norm) == (45, 45, 0, LIMIT)
    assert clips.site[2] == "clipped"
    assert clips.sum_ratio > 100 * clips.calls


def test_of_gradients_that_are_still_scaled(run: Run) -> None:
    scale = 4096.0

    def first(gradients: Gradients) -> Gradients:
        return [each / scale for each in clipped(gradients)]

    clips = train(run, first, scale)
    assert clips is not None
    assert (clips.scaled, clips.scales) == (45, [scale, scale])


def test_of_gradients_that_are_unscaled(run: Run) -> None:
    scale = 4096.0

    def after(gradients: Gradients) -> Gradients:
        return clipped([each / scale for each in gradients])

    clips = train(run, after, scale)
    assert clips is not None
    assert (clips.scaled, clips.scales) == (0, [scale, scale])


def test_names_of_functions_around_it_stay(run: Run) -> None:
    """Before Python 3.13 what a follower changes in a frame's variables is written back to them."""
    most = 1e-3

    def inside(gradients: Gradients) -> Gradients:
        norm = gradients[0].norm()
        if norm > most:
            return [each * most / norm for each in gradients]
        return gradients

    clips = train(run, inside)
    assert clips is not None
    assert most == 1e-3


def test_not_of_another_number(run: Run) -> None:
    def other(gradients: Gradients) -> Gradients:
        size = torch.tensor(40.0)
        by = min(1.0, LIMIT / size)
        return [each * by for each in gradients]

    assert train(run, other) is None


def test_not_where_the_loss_falls(run: Run) -> None:
    assert train(run, lambda gradients: [clipped(gradients)[0] / LIMIT], rate=0.3) is None


def test_what_clipping_reads_like(tmp_path: Path) -> None:
    def lines(*body: str) -> list[tuple[str, str]]:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        file.write_text("\n".join(["# norm", "def f(norm, g, self):", *(f"    {line}" for line in body)]))
        found = clip_lines.find([str(file)]).by_function.values()
        return [(ast.unparse(each.limit), ast.unparse(each.norm)) for each in found]

    assert lines("return g * min(1, self.most / norm)") == [("self.most", "norm")]
    assert lines("by = 2.0 / (norm + 1e-6)", "g *= by.clamp(max=1.0)") == [("2.0", "norm")]
    assert lines("g *= torch.clamp(2.0 / norm.item(), max=1)") == [("2.0", "norm")]
    assert lines("g *= 2.0 / max(norm, 1e-8) if norm > 2.0 else 1.0") == [("2.0", "norm")]
    assert lines("if norm > 2.0:", "    g = g * 2.0 / norm") == [("2.0", "norm")]
    assert lines("if norm > self.most:", "    g *= self.most / norm") == [("self.most", "norm")]
    assert lines("x = min(1.0, step / warmup)") == [("step", "warmup")], "what it is shows when it is measured"
    assert lines("x = (a / b).clamp(max=5)", "if a > b:", "    c = a / d") == []
