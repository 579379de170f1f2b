"""Denoising small discs; after every update the error on held-out ones is taken, always with the same noise."""

import torch
from torch import nn

SIDE, LEVELS = 8, 40
keep = torch.cumprod(1 - torch.linspace(1e-3, 0.12, LEVELS), 0)


def discs(count, generator):
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    at_x, at_y = 2 + 4 * torch.rand(2, count, 1, 1, generator=generator)
    radius = 1 + 1.8 * torch.rand(count, 1, 1, generator=generator)
    far = ((columns - at_x) ** 2 + (rows - at_y) ** 2).sqrt()
    return (2 * torch.sigmoid(3 * (radius - far)) - 1).flatten(1)


def noisy(x, level, noise):
    kept = keep[level][:, None]
    return kept.sqrt() * x + (1 - kept).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.level = nn.Embedding(LEVELS, 16)
        self.body = nn.Sequential(nn.Linear(SIDE * SIDE + 16, hidden), nn.SiLU(), nn.Linear(hidden, SIDE * SIDE))

    def forward(self, x, level):
        return self.body(torch.cat([x, self.level(level)], 1))


class Tracker:
    def __init__(self, held_out):
        self.held_out = held_out

    @torch.no_grad()
    def error(self, model):
        same = torch.Generator().manual_seed(0)
        level = torch.randint(0, LEVELS, (len(self.held_out),), generator=same)
        noise = torch.randn(self.held_out.shape, generator=same)
        return ((model(noisy(self.held_out, level, noise), level) - noise) ** 2).mean().item()


generator = torch.Generator().manual_seed(77)
data, tracker = discs(3000, generator), Tracker(discs(100, generator))
torch.manual_seed(1)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(800):
    x = data[torch.randint(0, len(data), (64,))]
    level = torch.randint(0, LEVELS, (64,))
    noise = torch.randn(x.shape)
    loss = ((model(noisy(x, level, noise), level) - noise) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    error = tracker.error(model)
    if step % 100 == 99:
        print(f"step {step + 1} loss {loss.item():.4f} held-out {error:.4f}", flush=True)
