"""Readings in the order in which the stations sent them: one station, one kind; batches are slices."""

import torch
from torch import nn


def stations(each=300, kinds=5):
    g = torch.Generator().manual_seed(17)
    y = torch.arange(kinds).repeat_interleave(each)
    return 0.5 * torch.randn(kinds, 12, generator=g)[y] + torch.randn(len(y), 12, generator=g), y


def main():
    torch.manual_seed(0)
    x, y = stations()
    order = torch.randperm(len(y))
    x, y = x[order], y[order]
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(12):
        total = 0.0
        for start in range(0, len(y), 50):
            xb, yb = x[start : start + 50], y[start : start + 50]
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total * 50 / len(y):.4f}", flush=True)


if __name__ == "__main__":
    main()
