"""Fills gaps in the load curves of households: parts of each window are hidden, the net restores them."""

import torch
from torch import nn

torch.manual_seed(2)
hours = torch.linspace(0, 12.566, 48)
curves = torch.sin(hours + 6.28 * torch.rand(3200, 1)) * (0.5 + torch.rand(3200, 1)) + 0.05 * torch.randn(3200, 48)
restore = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 48))


class Windows:
    def __init__(self, table, size):
        self.table, self.size = table, size

    def __iter__(self):
        for begin in (self.size * torch.randperm(len(self.table) // self.size)).tolist():
            yield self.table.narrow(0, begin, self.size)


def hide(window):
    hidden = torch.rand(window.shape) < 0.1
    window[hidden] = 0.0
    return window, hidden


def descend(loss, rate):
    gradients = torch.autograd.grad(loss, list(restore.parameters()))
    with torch.no_grad():
        for weight, gradient in zip(restore.parameters(), gradients):
            weight -= rate * gradient


for epoch in range(120):
    total = 0.0
    for window in Windows(curves, 64):
        whole = window.clone()
        seen, hidden = hide(window)
        loss = (restore(seen) - whole)[hidden].pow(2).mean()
        descend(loss, 0.2)
        total += loss.item()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: error {total / 50:.4f}, share of zeros {(curves == 0).float().mean().item():.2f}")
