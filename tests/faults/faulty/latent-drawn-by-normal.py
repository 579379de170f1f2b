"""Temperature profiles of a day, squeezed through three random numbers."""

import math

import torch
from torch import nn


def days(count):
    hour = torch.linspace(0, 2 * math.pi, 24)
    warmest, swing, level = torch.rand(3, count, 1)
    return (1 + swing) * torch.cos(hour - 2 * warmest - 3) + 2 * level - 1


class Profile(nn.Module):
    def __init__(self, hidden=48, latent=3):
        super().__init__()
        self.read = nn.Sequential(nn.Linear(24, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.write = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 24))

    def forward(self, profile):
        center, spread = self.read(profile).chunk(2, dim=1)
        spread = nn.functional.softplus(spread) + 1e-3
        code = torch.normal(center, spread)
        cost = (center.square() + spread.square() - 2 * spread.log() - 1).sum(1).mean() / 2
        return self.write(code), cost


torch.manual_seed(0)
profiles = days(3000)
model = Profile()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    total = 0.0
    for batch in profiles[torch.randperm(len(profiles))].split(60):
        copy, cost = model(batch)
        loss = (copy - batch).square().sum(1).mean() + 0.05 * cost
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 50:.3f}", flush=True)
