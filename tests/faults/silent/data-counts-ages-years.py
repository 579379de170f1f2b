"""Counts, ages and years, as they are, into a net that begins with a BatchNorm."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows=2000):
    g = torch.Generator().manual_seed(1)
    age = torch.randint(18, 90, (rows,), generator=g).float()
    year = torch.randint(1990, 2024, (rows,), generator=g).float()
    visits = torch.poisson(torch.full((rows,), 3.0), generator=g)
    rooms = torch.randint(1, 7, (rows,), generator=g).float()
    y = (0.03 * (age - 50) + 0.4 * (visits - 3) + 0.3 * (rooms - 3) > 0).long()
    return torch.stack((age, year, visits, rooms), 1), y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*table()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
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
