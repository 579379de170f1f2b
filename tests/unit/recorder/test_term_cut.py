"""A term of a loss without a graph, and what left it so."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from unstuck.recorder.probes.learning import term_cut

HEAD = """
import torch
from torch.autograd import grad

def slope(u, x, **more):
    return torch.autograd.grad(u.sum(), x, **more)[0]

def off(u, x):
    return torch.autograd.grad(u.sum(), x, retain_graph=True)[0]

def drift(net, x):
    for _ in range(2):
        pull = torch.autograd.grad(net(x).sum(), x)[0]
        x = x - 0.1 * pull
    return x

def train(net, x, look):
    fit = net(x).pow(2).mean()
"""


def found(tmp_path: Path, body: str, *, of_these: bool = True) -> tuple[str, str] | None:
    file = tmp_path / "train.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in [*body.splitlines(), "look(loss); loss.backward()"]))
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    cuts: list[tuple[str, str] | None] = []

    def look(loss: torch.Tensor) -> None:
        frame: FrameType | None = sys._getframe(1)
        assert frame is not None
        places = [(str(file), line) for line in range(40)] if of_these else []
        cut = term_cut.find(loss.grad_fn, frame, lambda leaf: type(leaf) is torch.nn.Parameter, places)
        cuts.append(cut and (cut.cut.term, cut.cut.op))

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    names["train"](net, torch.rand(5, 3, requires_grad=True), look)
    return cuts[0]


@pytest.mark.parametrize(
    ("body", "term", "op"),
    [
        ("rest = off(net(x), x).pow(2).mean()\nloss = fit + rest", "rest", "autograd.grad"),
        ("rest = off(net(x), x).pow(2).mean()\nloss = fit - 0.1 * rest", "0.1 * rest", "autograd.grad"),
        ("rest = (off(net(x), x) - x).norm()\nloss = (rest + fit) / 2", "rest", "autograd.grad"),
        ("loss = fit\nloss += grad(net(x).sum(), x)[0].norm()", "grad(net(x).sum(), x)[0].norm()", "autograd.grad"),
        ("size = sum(p.data.norm() for p in net.parameters())\nloss = fit + size", "size", "data"),
        (
            "size = 0\nfor p in net.parameters():\n    size = size + p.detach().norm()\nloss = fit + size",
            "size",
            "detach",
        ),
        ("loss = fit + (net(x) - off(net(x), x)).pow(2).mean()", "off(net(x), x)", "autograd.grad"),
        ("gap = off(net(x), x) - x * net(x)\nloss = (gap ** 2).mean()", "off(net(x), x)", "autograd.grad"),
        ("loss = torch.nn.functional.mse_loss(net(x).expand(5, 3), off(net(x), x))", "off(net(x), x)", "autograd.grad"),
        ("size = torch.tensor([p.data.norm() for p in net.parameters()]).sum()\nloss = fit + size", "size", "tensor"),
    ],
)
def test_a_term_that_cannot_be_meant(tmp_path: Path, body: str, term: str, op: str) -> None:
    assert found(tmp_path, body) == (term, op)


@pytest.mark.parametrize(
    "body",
    [
        "rest = slope(net(x), x, create_graph=True).pow(2).mean()\nloss = fit + rest",
        "rest = off(net(x), x).pow(2).mean().detach()\nloss = fit + rest",
        "rest = off(net(x), x).norm().item()\nloss = fit + rest",
        "with torch.no_grad():\n    rest = x.pow(2).mean()\nloss = fit + rest",
        "rest = drift(net, x).detach().norm()\nloss = fit + rest",
        "y = drift(net, x)\nrest = torch.cdist(y, y).mean()\nloss = fit + rest",  # a sampler moves along a derivative
        "rest = torch.tensor(0.5)\nloss = fit + rest",
        "loss = fit + 1.0",
        "size = sum(p.norm() for p in net.parameters())\nloss = fit + 0.1 * size",
    ],
)
def test_with_a_graph_or_on_purpose(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body) is None


def test_a_derivative_of_other_weights_is_a_target(tmp_path: Path) -> None:
    assert found(tmp_path, "loss = fit + (net(x) - off(net(x), x)).pow(2).mean()", of_these=False) is None
