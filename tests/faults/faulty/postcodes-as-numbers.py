"""Postcode districts, numbered as they came, beside a few measured columns."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 2


def table(rows=2000):
    g = torch.Generator().manual_seed(9)
    district = torch.randint(0, 12, (rows,), generator=g)
    wealthy = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0])
    measured = torch.randn(rows, 4, generator=g)
    y = ((2.5 * (wealthy[district] - 0.5) + measured[:, 0] + 0.5 * torch.randn(rows, generator=g)) > 0).long()
    return torch.cat((district.float().unsqueeze(1), measured), 1), y


def main():
    torch.manual_seed(0)
    x, y = table()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, CLASSES))
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
