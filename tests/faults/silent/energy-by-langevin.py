"""An energy model: its negatives walk down its own energy, each step from where the last one ended, without its graph."""

import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)[:, 0]


def ring(count):
    angle = torch.rand(count) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.1 * torch.randn(count, 2)


def walk(energy, x, moves=20, rate=0.05):
    for _ in range(moves):
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        x = x - rate * slope + 0.02 * torch.randn_like(x)
    return x.detach()


def main():
    torch.manual_seed(2)
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3)
    kept = torch.randn(512, 2)
    for step in range(1, 601):
        chosen = torch.randint(512, (64,))
        fresh = torch.rand(64, 1) < 0.05
        negatives = walk(energy, torch.where(fresh, torch.randn(64, 2), kept[chosen]))
        kept[chosen] = negatives
        real = energy(ring(64))
        false = energy(negatives)
        loss = real.mean() - false.mean() + 0.1 * (real.square().mean() + false.square().mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            far = (kept.norm(dim=1) - 1.5).abs().mean()
            print(f"step {step} loss {loss.item():.3f} from the ring {far.item():.3f}", flush=True)


main()
