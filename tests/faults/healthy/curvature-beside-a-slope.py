"""A net for a damped spring: u'' + 2 d u' + w² u = 0, with its start given."""

import torch
from torch import nn

DAMPING, FREQUENCY = 1.0, 8.0


class Fit:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def equation(self, t):
        u = self.net(2 * t - 1)
        one = torch.ones_like(u)
        slope = torch.autograd.grad(u, t, one, create_graph=True)[0]
        bend = torch.autograd.grad(slope, t, one, True, True)[0]
        return bend + 2 * DAMPING * slope + FREQUENCY**2 * u

    def start(self):
        t = torch.zeros(1, 1, requires_grad=True)
        u = self.net(2 * t - 1)
        slope = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]
        return (u - 1).pow(2).sum() + (slope / FREQUENCY).pow(2).sum()

    def step(self):
        t = torch.rand(64, 1, requires_grad=True)
        inside = self.equation(t).pow(2).mean() / FREQUENCY**2
        loss = inside + 200.0 * self.start()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return inside.item()


torch.manual_seed(0)
fit = Fit()
for step in range(1000):
    inside = fit.step()
    if step % 200 == 0:
        print(f"step {step}: equation {inside:.4f}")
