"""Fault: the distance of a pair is a plain square root; two embeddings that agree have distance 0, where its slope is
infinite."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 8))

    def forward(self, x):
        return self.net(x)


def distance(a, b):
    return ((a - b) ** 2).sum(1).sqrt()


def contrastive(a, b, same, margin=1.0):
    d = distance(a, b)
    return torch.where(same, d**2, (margin - d).clamp_min(0) ** 2).mean()


def make_pairs(n, g, step):
    left = torch.randn(n, 10, generator=g)
    same = torch.rand(n, generator=g) > 0.5
    right = torch.where(same.unsqueeze(1), left + 0.05 * torch.randn(n, 10, generator=g), torch.randn(n, 10, generator=g))
    if step % 90 == 70:
        right[3] = left[3]  # the same picture twice
        same[3] = True
    return left, right, same


def main():
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(2)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(400):
        left, right, same = make_pairs(48, g, step)
        loss = contrastive(model(left), model(right), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
