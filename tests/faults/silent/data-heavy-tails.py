"""Incomes and sizes with heavy tails, one of them a hundred times the median."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows=2000):
    g = torch.Generator().manual_seed(2)
    u = torch.rand(rows, 4, generator=g)
    x = (1 - u) ** (-1 / 1.6)
    x[:, 2] = torch.exp(1.3 * torch.randn(rows, generator=g))
    x[:, 3] = torch.randn(rows, generator=g) / torch.randn(rows, generator=g).abs().clamp_min(0.01)
    y = torch.log(x[:, 0]) + torch.log(x[:, 2]) + 0.2 * torch.randn(rows, generator=g)
    return x, y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*table()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
