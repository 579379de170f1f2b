"""Noise prediction on a ring of points, with an AdamW of one's own."""

import math

import torch
from torch import nn

torch.manual_seed(8)
LEVELS = 40
betas = torch.linspace(1e-3, 0.14, LEVELS)
kept = torch.cumprod(1 - betas, 0)


def ring(count):
    angle = 2 * math.pi * torch.rand(count)
    radius = 1.2 + 0.05 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.levels = nn.Embedding(LEVELS, 16)
        self.inner = nn.ModuleList([nn.Linear(2 + 16, width), nn.Linear(width, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, 2)

    def forward(self, x, level):
        h = torch.cat([x, self.levels(level)], 1)
        for layer in self.inner:
            h = nn.functional.silu(layer(h))
        return self.out(h)


class AdamW:
    def __init__(self, params, rate=2e-3, betas=(0.9, 0.999), decay=0.05):
        self.rate, self.betas, self.decay, self.steps = rate, betas, decay, 0
        self.state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in params}

    def clear(self):
        for p in self.state:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.steps += 1
        first, second = (1 - beta**self.steps for beta in self.betas)
        for p, (mean, square) in self.state.items():
            mean.lerp_(p.grad, 1 - self.betas[0])
            square.lerp_(p.grad**2, 1 - self.betas[1])
            p.mul_(1 - self.decay)
            p.addcdiv_(mean / first, (square / second).sqrt() + 1e-8, value=-self.rate)


net = Denoiser()
optimizer = AdamW(net.parameters())
total = 0.0
for step in range(1, 1201):
    clean, level = ring(128), torch.randint(0, LEVELS, (128,))
    noise = torch.randn_like(clean)
    part = kept[level, None]
    guess = net(part.sqrt() * clean + (1 - part).sqrt() * noise, level)
    loss = (guess - noise).square().mean()
    optimizer.clear()
    loss.backward()
    optimizer.step()
    total += loss.item()
    if step % 200 == 0:
        print(f"step {step}: {total / 200:.3f}")
        total = 0.0
