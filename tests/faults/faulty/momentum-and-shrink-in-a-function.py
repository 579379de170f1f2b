"""Digits of seven segments with noise; the update is a function that takes gradients from autograd.grad."""

import torch
from torch.nn import functional as F

SEGMENTS = torch.tensor(
    [[1, 1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 1, 0, 1], [1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 0, 1, 0],
     [1, 1, 0, 1, 0, 1, 1], [1, 1, 0, 1, 1, 1, 1], [1, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1]]
).float()  # fmt: skip


def layer(inputs, outputs):
    return (torch.randn(outputs, inputs) * (2 / inputs) ** 0.5).requires_grad_()


def answer(weights, x):
    for weight in weights[:-1]:
        x = F.relu(x @ weight.T)
    return x @ weights[-1].T


@torch.no_grad()
def update(weights, gradients, moments, rate, shrink):
    for weight, gradient, moment in zip(weights, gradients, moments, strict=True):
        moment.mul_(0.9).add_(gradient)
        weight.mul_(1 - shrink)
        weight.sub_(moment, alpha=rate)


torch.manual_seed(5)
weights = [layer(7, 64), layer(64, 64), layer(64, 64), layer(64, 10)]
moments = [torch.zeros_like(weight) for weight in weights]
total = 0.0
for step in range(1, 2001):
    digit = torch.randint(0, 10, (64,))
    shown = SEGMENTS[digit] + 0.3 * torch.randn(64, 7)
    loss = F.cross_entropy(answer(weights, shown), digit)
    update(weights, torch.autograd.grad(loss, weights), moments, rate=0.01, shrink=0.05)
    total += loss.item()
    if step % 400 == 0:
        print(f"{step}: {total / 400:.3f}")
        total = 0.0
