"""Pictures of 0 to 255, as bytes were, into a net that begins with a BatchNorm."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pictures(rows=600):
    g = torch.Generator().manual_seed(3)
    y = torch.randint(0, 3, (rows,), generator=g)
    x = torch.randint(0, 120, (rows, 3, 16, 16), generator=g).float()
    for k in range(3):
        x[y == k, k] += 135
    return x, y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*pictures()), batch_size=50, shuffle=True)
    model = nn.Sequential(
        nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
    )

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
