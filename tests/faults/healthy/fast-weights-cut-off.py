"""A start for thermometers that adapts from ten readings: weights of each task come of a step of plain descent."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(10)


def task():
    scale, shift = 0.5 + 2 * torch.rand(1), 3 * torch.rand(1)
    x = 6 * torch.rand(20, 1) - 3
    return x, scale * torch.sin(x + shift)


net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def adapted(x, y, rate=0.05):
    weights = dict(net.named_parameters())
    for _ in range(2):
        loss = nn.functional.mse_loss(functional_call(net, weights, (x,)), y)
        slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {name: weight - rate * slope for (name, weight), slope in zip(weights.items(), slopes)}
    return weights


recent = []
for step in range(1, 501):
    total = 0.0
    for _ in range(3):
        x, y = task()
        total = total + nn.functional.mse_loss(functional_call(net, adapted(x[:10], y[:10]), (x[10:],)), y[10:])
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    recent.append(total.item() / 3)
    if step % 100 == 0:
        print(f"step {step}: error after adapting {sum(recent) / len(recent):.3f}")
        recent.clear()
