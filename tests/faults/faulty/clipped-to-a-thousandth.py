"""Gradients with norms around 1, clipped to a thousandth at every step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def signals(count=1600):
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(count, 16, generator=generator)
    y = 3 * x[:, :1] - 2 * x[:, 1:2] * x[:, 2:3]
    return x, y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*signals()), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e-3)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
