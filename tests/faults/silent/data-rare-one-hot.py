"""One-hot columns of which some are hardly ever 1."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows=2000):
    g = torch.Generator().manual_seed(8)
    shares = torch.tensor([0.5, 0.3, 0.15, 0.045, 0.004, 0.001])
    kind = torch.multinomial(shares, rows, replacement=True, generator=g)
    x = torch.cat((nn.functional.one_hot(kind, 6).float(), torch.randn(rows, 4, generator=g)), 1)
    return x, ((kind % 2) * 2.0 - 1 + x[:, 6] > 0).long()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*table()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
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
