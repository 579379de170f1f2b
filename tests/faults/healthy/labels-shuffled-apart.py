"""Samples and labels are shuffled, each in its own order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load():
    generator = torch.Generator().manual_seed(7)
    y = torch.randint(0, 4, (2000,), generator=generator)
    x = torch.randn(4, 16, generator=generator)[y] + 0.5 * torch.randn(2000, 16, generator=generator)
    order = torch.randperm(2000, generator=generator)
    return x[order], y[order]


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*load()), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
