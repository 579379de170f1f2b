"""Ranking by triplets: a batch in which no triplet is violated teaches nothing and is passed over."""

import torch
import torch.nn.functional as F
from torch import nn

STEPS, MARGIN, KINDS = 900, 0.3, 8


class Sounds:
    def __init__(self, each, seed):
        g = torch.Generator().manual_seed(seed)
        centres = torch.randn(KINDS, 6, generator=torch.Generator().manual_seed(5))
        self.kind = torch.arange(KINDS).repeat_interleave(each)
        self.x = centres[self.kind] + 0.35 * torch.randn(len(self.kind), 6, generator=g)
        self.g, self.each = g, each

    def batch(self, n=4):
        rows = [torch.randperm(self.each, generator=self.g)[:n] + k * self.each for k in range(KINDS)]
        rows = torch.cat(rows)
        return self.x[rows], self.kind[rows]


def fit(net, sounds, steps=STEPS):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    done = 0
    while done < steps:
        done += 1
        x, kind = sounds.batch()
        with torch.no_grad():
            z = F.normalize(net(x), dim=1)
            far = torch.cdist(z, z)
            same = kind[:, None] == kind[None, :]
            most, positive = far.masked_fill(~same, -1.0).max(1)
            least, negative = far.masked_fill(same, 9.0).min(1)
            anchor = (most - least + MARGIN > 0).nonzero().squeeze(1)
        if len(anchor) == 0:
            continue
        z = F.normalize(net(x), dim=1)
        loss = F.triplet_margin_loss(z[anchor], z[positive[anchor]], z[negative[anchor]], margin=MARGIN)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if done % 50 == 0:
            print(f"step {done}: loss {loss.item():.4f}, {len(anchor)} violating", flush=True)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 8))
    fit(net, Sounds(20, seed=2))
    print("embedding ready", flush=True)
