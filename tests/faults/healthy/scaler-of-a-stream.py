"""The spread of the next ticks: features are scaled by what the stream has shown so far, before they meet the model."""

import math

import torch
from torch import nn


class StreamScaler:
    def __init__(self, columns):
        self.count = 0
        self.sums = torch.zeros(columns, dtype=torch.float64)
        self.squares = torch.zeros(columns, dtype=torch.float64)

    def add(self, rows):
        self.count += len(rows)
        self.sums += rows.double().sum(0)
        self.squares += rows.double().pow(2).sum(0)

    def scale(self, rows):
        mean = self.sums / self.count
        spread = (self.squares / self.count - mean**2) ** 0.5
        return ((rows - mean) / (spread + 1e-4)).float()


def ticks(start, count):
    """Bid, ask and volume, which go up and down around a level."""
    t = torch.arange(start, start + count)
    price = 64000 + 45 * torch.sin(t / 90) + 12 * torch.sin(t / 7)
    volume = 40 + 9 * torch.randn(count)
    wide = 4 + 0.1 * volume + 0.5 * torch.randn(count)
    return torch.stack([price, price + wide, volume], 1), 0.1 * volume - 4


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scaler = StreamScaler(3)
    model = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(2500):
        rows, wider = ticks(200 * step, 200)
        scaler.add(rows)
        predicted = model(scaler.scale(rows)).squeeze(1)
        loss = (predicted - wider).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 249:
            print(f"tick {200 * step} rmse {math.sqrt(loss.item()):.4f}")


if __name__ == "__main__":
    main()
