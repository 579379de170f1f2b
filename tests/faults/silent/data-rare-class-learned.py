"""Forty of one class for one of another, and both are learned."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows=2400):
    g = torch.Generator().manual_seed(11)
    y = (torch.rand(rows, generator=g) < 0.025).long()
    return torch.randn(rows, 6, generator=g) + 3 * y[:, None], y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*table()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(6):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
