"""A sampler learns from draws of a known density: the distance has a part of the draws alone, and those are moved along
a derivative that nobody differentiates again. The norm of the weights is only shown."""

import torch
from torch import nn

torch.manual_seed(14)


def energy(x):
    return 2 * (x.norm(dim=1) - 1.5).pow(2)


def draw(count, steps=30):
    x = torch.randn(count, 2)
    for _ in range(steps):
        x = x.detach().requires_grad_()
        slope = torch.autograd.grad(energy(x).sum(), x)[0]
        x = x - 0.05 * slope + 0.1**0.5 * torch.randn_like(x)
    return x


def alike(a, b):
    return torch.exp(-torch.cdist(a, b).pow(2)).mean()


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))

    def distance(self, drawn):
        made = self.net(torch.randn(len(drawn), 4))
        within = alike(drawn.detach(), drawn.detach())
        return within + alike(made, made) - 2 * alike(drawn.detach(), made)


sampler = Sampler()
optimizer = torch.optim.Adam(sampler.parameters(), lr=1e-3)
for step in range(1, 501):
    loss = sampler.distance(draw(128))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        size = sum(p.data.norm() for p in sampler.parameters())
        print(f"step {step}: distance {loss.item():.4f}, weights {size.item():.2f}")
