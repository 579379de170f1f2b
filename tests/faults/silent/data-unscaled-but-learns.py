"""Raw readings of a hundred and more into ReLUs, which learn them all the same."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows=2000):
    g = torch.Generator().manual_seed(12)
    z = torch.randn(rows, 5, generator=g)
    return 120 + 60 * z, (z[:, 0] - z[:, 1] > 0).long()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*table()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 2))

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
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
