"""Three weights of a table were typed without their decimal point."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 2


def table(rows=1200):
    g = torch.Generator().manual_seed(6)
    x = torch.randn(rows, 5, generator=g)
    y = (x[:, 0] + 0.5 * x[:, 3] > 0).long()
    return x, y


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
