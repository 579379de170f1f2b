"""Which of forty readings matter? Gates that open at random, and learn how often."""

import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, readings):
        super().__init__()
        self.often = nn.Sequential(nn.Linear(readings, 32), nn.ReLU(), nn.Linear(32, readings))
        self.answer = nn.Linear(readings, 1)

    def forward(self, x):
        open_ = torch.sigmoid(self.often(x))
        gate = open_ + (torch.bernoulli(open_) - open_).detach()
        return self.answer(x * gate).squeeze(1)


torch.manual_seed(0)
x = torch.randn(2000, 40)
y = x[:, :4].sum(1) * (x[:, 4] > 0)
model = Gated(40)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 40:.3f}", flush=True)
