"""Weights that were made much too large shrink fast at first, by their gradients alone; half of the target is noise."""

import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(4096, 24)
y = torch.tanh(x[:, :4].sum(1, keepdim=True) / 2) + 0.9 * torch.randn(4096, 1)
net = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24), nn.Linear(24, 1))
for layer in net:
    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=0.5)
moments = [torch.zeros_like(p) for p in net.parameters()]
for step in range(1500):
    rows = torch.randint(0, len(x), (128,))
    loss = (net(x[rows]) - y[rows]).square().mean()
    net.zero_grad()
    loss.backward()
    with torch.no_grad():
        size = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        for p, moment in zip(net.parameters(), moments, strict=True):
            moment.mul_(0.9).add_(p.grad * (1 / size).clamp(max=1.0))
            p.mul_(1 - 0.02 * 0.05).sub_(moment, alpha=0.02)
    if step % 250 == 249:
        print(step + 1, round(loss.item(), 3))
