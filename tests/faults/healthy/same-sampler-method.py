"""Pairs for a metric, drawn by a method of the data class."""

import random

import torch
from torch import nn


class Pairs:
    def __init__(self, points, groups):
        self.points, self.groups, self.rng = points, groups, random.Random(11)

    def draw(self, count):
        first = torch.tensor(self.rng.choices(range(len(self.points)), k=count))
        second = torch.tensor(self.rng.choices(range(len(self.points)), k=count))
        alike = (self.groups[first] == self.groups[second]).float()
        return self.points[first], self.points[second], alike


class Trainer:
    def __init__(self, net, pairs):
        self.net, self.pairs = net, pairs
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step(self):
        a, b, alike = self.pairs.draw(32)
        a, b = a - a.mean(), b - b.mean()
        gap = (self.net(a) - self.net(b)).pow(2).sum(1)
        loss = (alike * gap + (1 - alike) * (1 - gap.sqrt()).clamp(min=0).pow(2)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(3)
    groups = torch.randint(0, 5, (2500,))
    points = torch.randn(5, 12)[groups] + 0.6 * torch.randn(2500, 12)
    trainer = Trainer(nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)), Pairs(points, groups))
    for step in range(1, 401):
        loss = trainer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
