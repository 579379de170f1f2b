"""Gradients of four batches are added up, then one update is made, by hand."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(480, 10)
y = x.sum(1, keepdim=True).sign()
model = nn.Sequential(nn.Linear(10, 12), nn.Tanh(), nn.Linear(12, 1))
accumulate = 4
updates = 0
model.zero_grad()
for _epoch in range(10):
    for number, i in enumerate(range(0, 480, 10), 1):
        loss = nn.functional.soft_margin_loss(model(x[i : i + 10]), y[i : i + 10]) / accumulate
        loss.backward()
        if number % accumulate == 0:
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(p.grad, alpha=-0.1)
            model.zero_grad()
            updates += 1
print("updates", updates)
