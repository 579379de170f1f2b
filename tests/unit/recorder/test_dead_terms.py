"""Terms of a loss whose gradient dies in the graph: which are noted, and which are at rest on purpose."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from unstuck.recorder.probes.learning.dead_terms import DeadTerms
from unstuck.recorder.records.learning import DeadTerm

Loss = Callable[[Any], Any]
STEPS = 24
SAME = torch.eye(6, dtype=torch.bool)
PADDED = torch.arange(4) > 1
INF = float("inf")


def distances(h: Any) -> Any:
    return (h[:, None] - h[None, :]).square().sum(-1) + 0.01


def noted(loss_of: Loss, *, steps: int = STEPS) -> DeadTerm | None:
    torch.manual_seed(0)
    weight = torch.randn(5, 4, requires_grad=True)
    terms = DeadTerms()
    for _ in range(steps):
        loss = loss_of(torch.randn(6, 5) @ weight)
        with torch.no_grad():
            terms.look(loss, sys._getframe())
        loss.backward()
    return terms.record()


def overwritten(h: Any) -> Any:
    d = distances(h).clone()
    d[SAME] = 0.0
    return -d.amin(1).mean()


def huge(h: Any) -> Any:
    return F.cross_entropy(h.masked_fill(h < h.mean(1, keepdim=True), 1e9), h.argmin(1))


DEAD: dict[str, tuple[Loss, str, str, str]] = {
    "filled": (lambda h: -distances(h).masked_fill(SAME, 0.0).min(1)[0].mean(), "masked_fill", "written", "min"),
    "overwritten": (overwritten, "index_put", "written", "amin"),
    "product": (lambda h: -(distances(h) * ~SAME).min(1)[0].mean(), "mul", "written", "min"),
    "where": (lambda h: -torch.where(SAME, torch.tensor(0.0), distances(h)).amin(1).mean(), "where", "written", "amin"),
    "triangle": (lambda h: -torch.triu(distances(h), 1).amin(1).mean(), "triu", "written", "amin"),
    "itself": (lambda h: -torch.cdist(h, h).topk(1, largest=False)[0].mean(), "cdist", "zero", "topk"),
    "huge": (huge, "masked_fill", "written", "log_softmax"),
    "capped": (lambda h: (h.square() + 3.0).clamp(max=2.0).mean(), "clamp", "limit", ""),
    "wrong way": (lambda h: -torch.relu(-h.square() - 1.0).mean(), "relu", "limit", ""),
    "floor": (lambda h: -torch.maximum(-h.square(), torch.tensor(1.0)).mean(), "maximum", "limit", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DEAD)
def test_a_gradient_that_never_leaves(name: str) -> None:
    loss, operation, kind, choice = DEAD[name]
    term = noted(loss)
    assert term is not None
    assert (term.operation.removesuffix("_"), term.kind, term.choice) == (operation, kind, choice)
    assert term.seen == 7, "looks become rarer"


def sometimes() -> Loss:
    times = iter(range(STEPS))
    return lambda h: -distances(h).masked_fill(SAME, 0.0 if next(times) != 9 else INF).min(1)[0].mean()


AT_REST: dict[str, Loss] = {
    "filled as it should be": lambda h: -distances(h).masked_fill(SAME, INF).min(1)[0].mean(),
    "a hinge that is satisfied": lambda h: torch.relu(0.1 - distances(h).max() - 1.0) + h.mean(),
    "free bits": lambda h: h.square().mean().clamp(min=50.0) + torch.maximum(h.mean(), torch.tensor(9.0)),
    "a ratio that is clipped": lambda h: -torch.min(h.exp(), (h.exp() + 9.0).clamp(0.8, 1.2)).mean(),
    "drawn apart far enough": lambda h: -(distances(h) + 9.0).clamp(max=5.0).mean(),
    "a term of weight 0": lambda h: h.mean() + 0.0 * distances(h).min(1)[0].mean(),
    "no row is asked for": lambda h: h.mean() + h.masked_fill(torch.ones_like(h, dtype=torch.bool), 0.0).amax(1).sum(),
    "padding": lambda h: h.masked_fill(PADDED, 0.0).sum() + h.masked_fill(PADDED, -INF).amax(),
    "a denominator": lambda h: (h.sum(1) / h.norm(dim=1).clamp(min=99.0)).mean(),
    "interpolation between places": lambda h: (h - h.floor()).max(),
    "in one step it comes through": sometimes(),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_REST)
def test_terms_that_rest_on_purpose(name: str) -> None:
    term = noted(AT_REST[name])
    assert term is None, term


def test_a_graph_is_not_kept_alive_by_a_look() -> None:
    """Also where no backward pass comes: what was hooked must go with its graph."""
    gc.collect()
    terms, weight = DeadTerms(), torch.randn(5, 4, requires_grad=True)

    class Marked(torch.autograd.Function):  # type: ignore[misc]  # untyped there
        alive = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark = Mark()
            return x.clone()

        @staticmethod
        def backward(_: Any, *gradients: Any) -> Any:
            return gradients[0]

    class Mark:
        def __init__(self) -> None:
            Marked.alive += 1

        def __del__(self) -> None:
            Marked.alive -= 1

    h = Marked.apply(torch.randn(6, 5) @ weight)
    loss = distances(h).masked_fill(SAME, 0.0).min(1)[0].mean()
    with torch.no_grad():
        terms.look(loss, sys._getframe())
    assert Marked.alive == 1
    del h, loss
    gc.collect()
    assert Marked.alive == 0
