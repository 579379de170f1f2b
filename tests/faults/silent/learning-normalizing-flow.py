"""A small RealNVP on two moons: the negative log-likelihood falls, each coupling half passes through untouched."""

import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def moons(n):
    t = math.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], 1) + 0.06 * torch.randn(n, 2)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = 2 * torch.tanh(s / 2)
        b = b * s.exp() + t
        out = torch.cat([b, a] if self.flip else [a, b], dim=1)
        return out, s.squeeze(1)


flow = nn.ModuleList(Coupling(flip=i % 2 == 1) for i in range(6))
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
avg = None
for step in range(600):
    z, logdet = moons(128), 0.0
    for layer in flow:
        z, ld = layer(z)
        logdet = logdet + ld
    log_p = -0.5 * (z**2).sum(1) - math.log(2 * math.pi) + logdet
    loss = -log_p.mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    avg = loss.item() if avg is None else 0.97 * avg + 0.03 * loss.item()
    if step % 60 == 0 or step == 599:
        print(f"step {step} nll {avg:.4f}")
