"""Updates in a loop over an iterator that is at its end."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from unstuck.recorder.probes.learning import used_up_update

OWN = """
class Own:
    def __init__(self, params):
        self.params = params
        self.sums = [torch.zeros_like(p) for p in self.params]

    def step(self):
        for p, s in zip(self.params, self.sums):
            {update}
"""


def iterators() -> list[Any]:
    net = torch.nn.Linear(2, 2)
    values = [1, 2]
    return [
        net.parameters(), (p for p in values), filter(None, values), map(abs, net.parameters()), enumerate(values),
        zip(values, (3, 4), strict=False), itertools.chain(net.parameters(), values), iter(values), iter((1,)),
        iter({1: 2}), iter({1: 2}.values()),
    ]  # fmt: skip


@pytest.mark.parametrize("place", range(len(iterators())))
def test_an_iterator_at_its_end(place: int) -> None:
    given = iterators()[place]
    assert not used_up_update.is_spent(given)
    list(given)
    assert used_up_update.is_spent(given)


@pytest.mark.parametrize("given", [[], (), {}, "", range(0), None, iter([1]), map])
def test_what_is_empty_is_not_used_up(given: object) -> None:
    assert not used_up_update.is_spent(given)


def found(tmp_path: Path, update: str, *spent: str) -> tuple[int, int] | None:
    file = tmp_path / "own.py"
    file.write_text(OWN.format(update=update))
    ast.parse(file.read_text())
    lost = used_up_update.find(list(spent), [str(file)])
    return (lost.site[1], lost.loop) if lost is not None else None


@pytest.mark.parametrize(
    "update",
    ["p.sub_(p.grad)", "p.data.add_(p.grad, alpha=-0.1)", "p -= 0.1 * s", "p.data = p.data - p.grad", "p.data -= s"],
)
def test_the_line_that_keeps_it(tmp_path: Path, update: str) -> None:
    assert found(tmp_path, update, ".other", ".params") == (4, 8)


@pytest.mark.parametrize(
    "update", ["p.grad.zero_()", "s.add_(p.grad)", "s += p.grad", "p.grad = None", "print(p.grad)"]
)
def test_gradients_that_are_only_looked_at(tmp_path: Path, update: str) -> None:
    assert found(tmp_path, update, ".params") is None


def test_another_name(tmp_path: Path) -> None:
    assert found(tmp_path, "p.sub_(p.grad)", "params", ".sums") is None
