"""Machine states of which the faults are rare, with enough difference to be learned."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 3
SHARES = (0.94, 0.04, 0.02)


def table(rows=2000):
    g = torch.Generator().manual_seed(8)
    y = torch.multinomial(torch.tensor(SHARES), rows, replacement=True, generator=g)
    centres = 3 * torch.randn(CLASSES, 6, generator=g)
    return centres[y] + torch.randn(rows, 6, generator=g), y


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
