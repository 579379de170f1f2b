"""The angle that a wheel is turned to, from what is seen of the road; no angle is beyond the limit of the wheel."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LIMIT = math.radians(35)


class Steering(nn.Module):
    def __init__(self, seen=12, width=48):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(seen, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.angle = nn.Linear(width, 1)

    def forward(self, x):
        return (LIMIT * torch.tanh(self.angle(self.layers(x)))).squeeze(1)


def road(n, turn):
    x = torch.randn(n, 12)
    degrees = 30 * torch.sin(x @ turn) + torch.randn(n)
    return x, degrees


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(*road(1200, torch.randn(12) / 4)), batch_size=40, shuffle=True)
    model, criterion = Steering(), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for x, angle in loader:
            loss = criterion(model(x), angle)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
