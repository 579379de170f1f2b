"""House prices from a table in which -9999 stands for "not measured"."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MISSING = -9999.0


def table(rows=1600):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(rows, 6, generator=g)
    y = x @ torch.tensor([0.8, -0.6, 0.5, 0.0, 0.3, -0.4]) + 0.1 * torch.randn(rows, generator=g)
    x[torch.rand(rows, generator=g) < 0.04, 2] = MISSING
    return x, y


def main():
    torch.manual_seed(0)
    x, y = table()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
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
