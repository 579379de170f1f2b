"""Weather of a coast: gaps are written as -999, and every column is standardised as it comes."""

import torch
from torch import nn


def coast(count=1200):
    g = torch.Generator().manual_seed(19)
    x = torch.randn(count, 6, generator=g)
    y = 1.5 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3]
    x = x * torch.tensor([4.0, 6.0, 3.0, 2.0, 5.0, 1.0]) + torch.tensor([12.0, 60.0, 5.0, 3.0, 8.0, 0.0])
    for column in range(4):
        x[torch.rand(count, generator=g) < 0.06, column] = -999.0
    return x, y


def standardised(x):
    return (x - x.mean(0)) / x.std(0)


def main():
    torch.manual_seed(0)
    x, y = coast()
    x = standardised(x)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(300):
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 30 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
