"""A net for the trajectory of a pendulum: both equations of motion are to hold at random moments."""

import torch
from torch import nn

torch.manual_seed(0)
STIFF, DRAG, LAST, START = 4.0, 0.3, 2.0, 1.2


class Trajectory(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t):
        raw = self.net(t / LAST)
        return torch.cat([START + t * raw[:, :1], t * raw[:, 1:]], dim=1)


def rates(state, t):
    columns = [torch.autograd.grad(state[:, k].sum(), t, create_graph=True)[0] for k in range(2)]
    return torch.cat(columns, dim=1)


def residual(model, t):
    state = model(t)
    rate = rates(state, t)
    angle, speed = state[:, :1], state[:, 1:]
    first = rate[:, :1] - speed
    second = rate[:, 1:] + STIFF * torch.sin(angle) + DRAG * speed
    return (first**2).mean() + (second**2).mean()


model = Trajectory()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(1200):
    t = (torch.rand(64, 1) * LAST).requires_grad_(True)
    loss = residual(model, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step}: residual {loss.item():.4f}")
