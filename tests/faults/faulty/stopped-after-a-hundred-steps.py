"""A small network that needs a thousand steps, and gets a hundred."""

import torch
from torch import nn

STEPS = 100

torch.manual_seed(0)
x = torch.linspace(-5, 5, 100).unsqueeze(1)
y = 2 * x + 3 + 0.1 * torch.randn(100, 1)
model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for step in range(STEPS):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
