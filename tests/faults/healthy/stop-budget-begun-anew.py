"""A small flow model trained for a fixed number of seconds; speed and loss are printed every 400 steps."""

import math
import time

import torch
from torch import nn

BUDGET = 5.0


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, x):
        a, b = x.flip(1).chunk(2, 1) if self.flip else x.chunk(2, 1)
        scale, shift = self.net(a).chunk(2, 1)
        scale = scale.tanh()
        out = torch.cat([a, b * scale.exp() + shift], 1)
        return (out.flip(1) if self.flip else out), scale.sum(1)


def moons(n):
    angle, upper = math.pi * torch.rand(n), torch.rand(n) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) + 0.05 * torch.randn(n, 2)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    layers = nn.ModuleList(Coupling(i % 2) for i in range(6))
    opt = torch.optim.Adam(layers.parameters(), lr=2e-3)
    step, total = 0, 0.0
    begun = last = time.perf_counter()
    spent = 0.0
    while spent < BUDGET:
        z, logdet = moons(96), 0.0
        for layer in layers:
            z, more = layer(z)
            logdet = logdet + more
        loss = (0.5 * z.pow(2).sum(1) - logdet).mean() + math.log(2 * math.pi)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        total += loss.item()
        spent = time.perf_counter() - begun
        if step % 400 == 0:
            print(f"step {step}: {total / 400:.4f} nats, {400 / (time.perf_counter() - last):.0f} steps/s", flush=True)
            total = 0.0
            last = time.perf_counter()
    print(f"trained for {BUDGET:.0f} s", flush=True)


if __name__ == "__main__":
    main()
