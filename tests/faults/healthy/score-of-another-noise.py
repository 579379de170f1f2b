"""Learns where points on two moons lie, from points that were moved at random: a score model in two dimensions."""

import math

import torch
from torch import nn

torch.manual_seed(0)


def moons(count):
    angle = math.pi * torch.rand(count)
    side = torch.randint(0, 2, (count,)).float() * 2 - 1
    return torch.stack((side * angle.cos() + 0.5 * side, side * angle.sin()), 1)


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))

    def forward(self, given):
        return self.body(given)


class Trainer:
    def __init__(self, rate=2e-3):
        self.model = Score()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)

    def moved(self, points, width):
        eps = torch.randn(points.shape)
        return points + width * eps, eps

    def denoising_loss(self, points):
        width = torch.exp(torch.empty(len(points), 1).uniform_(-2.5, 0.5))
        moved, eps = self.moved(points, width)
        given = torch.cat((moved, width.log()), 1)
        return ((self.model(given) - eps) ** 2).mean()

    def step(self, points):
        loss = self.denoising_loss(points)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer, recent = Trainer(), []
for step in range(1600):
    recent.append(trainer.step(moons(128)))
    if step % 200 == 199:
        print(step + 1, sum(recent) / len(recent))
        recent.clear()
