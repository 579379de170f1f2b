"""Regression on rows of a table; a feeder class keeps its own position."""

import torch
from torch import nn


class Feeder:
    def __init__(self, inputs, targets, size):
        self.inputs, self.targets, self.size = inputs, targets, size

    def __iter__(self):
        position, count = 0, len(self.inputs)
        order = torch.randperm(count)
        while position < count:
            picked = order[position : position + self.size]
            yield self.inputs[picked], self.targets[picked]
            position += self.size


def run_epoch(model, optimizer, feeder):
    total = 0.0
    for x, y in feeder:
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def main():
    torch.manual_seed(4)
    inputs = torch.rand(2048, 8)
    targets = (inputs[:, :1] * inputs[:, 1:2]).sqrt() + 0.02 * torch.randn(2048, 1)
    model = nn.Sequential(nn.Linear(8, 48), nn.SiLU(), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    feeder = Feeder(inputs, targets, 32)
    for epoch in range(5):
        total = run_epoch(model, optimizer, feeder)
        print(f"epoch {epoch} loss {total:.4f}", flush=True)


if __name__ == "__main__":
    main()
