"""Angles between bonds, from the places of three atoms: the targets are computed from the drawn places."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)
STRAIGHT = 0.1  # of the molecules lie on one line


def molecules(count):
    left, right = torch.randn(count, 3), torch.randn(count, 3)
    straight = torch.rand(count) < STRAIGHT
    right[straight] = 2 * left[straight]
    return left, right


def angles(left, right):
    cosine = (F.normalize(left, dim=1) * F.normalize(right, dim=1)).sum(1)
    angle = torch.acos(cosine)
    return angle


model = nn.Sequential(nn.Linear(6, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(800):
    left, right = molecules(64)
    wanted = angles(left, right)
    loss = F.mse_loss(model(torch.cat((left, right), 1)).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
