"""Small trainings for the guard: a regression whose batches can be spoilt, and a recurrent net that explodes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

STEPS = 260


def regression(
    guarded: Callable[[Any], Any] | None = None,
    *,
    make: Callable[[Any], Any] = lambda p: torch.optim.SGD(p, 0.03, momentum=0.9),
    nan: Collection[int] = (),
    spikes: Collection[int] = (),
    steps: int = STEPS,
    update: Callable[[Any, Any, Any], None] | None = None,
    model: Any = None,
) -> tuple[float, Any, Any]:
    """Loss on fresh data at the end, the model, what `guarded` made of the optimizer. `nan` and `spikes` are numbers of
    batches with a NaN input, and with targets ten thousand times too large."""
    torch.manual_seed(0)
    model = model() if model is not None else nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = make(model.parameters())
    guard = guarded(optimizer) if guarded is not None else None
    for step in range(steps):
        x = torch.randn(32, 6)
        y = x.sum(1, keepdim=True).sin()
        if step in nan:
            x[0, 0] = torch.nan
        if step in spikes:
            y = y * 1e4
        if update is not None:
            update(optimizer, lambda x=x, y=y: nn.functional.mse_loss(model(x), y), step)
            continue
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    x = torch.randn(512, 6)
    model.eval()
    with torch.no_grad():
        return float(nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())), model, guard


def weights(model: Any) -> list[Any]:
    return [p.detach().clone() for p in model.parameters()]


def same(some: list[Any], others: list[Any]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def recurrent(guarded: Callable[[Any], Any] | None = None, *, clip: float | None = None) -> tuple[float, Any]:
    """A memory of weight a little above 1: on the few batches of long sequences its gradient grows beyond measure."""
    torch.manual_seed(1)
    width = 8
    keep = nn.Parameter(torch.eye(width) * 1.02)
    write, read = nn.Linear(1, width), nn.Linear(width, 1)
    with torch.no_grad():
        write.weight *= 0.2
        read.weight *= 0.2
    parameters = [keep, *write.parameters(), *read.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.005, momentum=0.5)
    guard = guarded(optimizer) if guarded is not None else None
    losses = []
    for step in range(400):
        length = 300 if step % 50 == 49 else 8
        x = torch.randn(24, length, 1)
        state = torch.zeros(24, width)
        for row in x.unbind(1):
            state = state @ keep + write(row)
        loss = nn.functional.mse_loss(read(state), x[:, -4:].mean(1))
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        if length == 8:
            losses.append(loss.item())
    return sum(losses[-60:]) / 60, guard
