"""Absolute errors, whose gradient does not shrink near the goal, and steps that jump over it every time."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 10)
y = x @ torch.randn(10, 1) + torch.randn(400, 1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)

for step in range(200):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
