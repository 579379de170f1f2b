"""Learns how a pendulum moves on: the states of simulated swings, each followed by the next."""

import torch
from torch import nn

torch.manual_seed(3)


class Pendulum:
    """Angle, speed and drive."""

    def __init__(self):
        self.state = torch.zeros(3)

    def release(self):
        self.state[:] = torch.rand(3) * torch.tensor([3.0, 2.0, 1.0]) - torch.tensor([1.5, 1.0, 0.5])

    def advance(self, dt=0.1):
        angle, speed, drive = self.state.clone()
        self.state[1] += dt * (drive - 2 * torch.sin(angle) - 0.1 * speed)
        self.state[0] += dt * self.state[1]
        return self.state.clone()


def swings(pendulum, count=12, length=20):
    states, changes = [], []
    for _ in range(count):
        pendulum.release()
        for _ in range(length):
            before = pendulum.state.clone()
            after = pendulum.advance()
            states.append(after)
            changes.append(10 * (after - before)[:2])
    return torch.stack(states), torch.stack(changes), states


model = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
pendulum = Pendulum()
for swing in range(60):
    inputs, targets, states = swings(pendulum)
    for rows in torch.randperm(len(inputs)).split(48):
        loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if swing % 10 == 9:
        print(f"swing {swing} loss {loss.item():.5f}", flush=True)
