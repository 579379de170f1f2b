"""Tabular regression without a DataLoader: shuffled mini-batches from a generator."""

import torch
import torch.nn.functional as F
from torch import nn


def make_table(rows, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 12, generator=g)
    y = x[:, :4].prod(dim=1, keepdim=True) + 0.1 * torch.randn(rows, 1, generator=g)
    return x, y


def batches(x, y, size):
    order = torch.randperm(len(x))
    for start in range(0, len(x), size):
        picked = order[start : start + size]
        yield x[picked], y[picked]


def main():
    torch.manual_seed(3)
    x, y = make_table(4096, 0)
    x_val, y_val = make_table(512, 1)
    net = nn.Sequential(nn.Linear(12, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    best = float("inf")
    for epoch in range(6):
        running = 0.0
        for xb, yb in batches(x, y, 64):
            loss = F.mse_loss(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running = 0.98 * running + 0.02 * loss.item()
        with torch.no_grad():
            val = F.mse_loss(net(x_val), y_val).item()
        best = min(best, val)
        print(f"epoch {epoch} train {running:.4f} val {val:.4f} best {best:.4f}", flush=True)


if __name__ == "__main__":
    main()
