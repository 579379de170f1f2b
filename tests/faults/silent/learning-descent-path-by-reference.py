"""Fits a plane by hand and keeps the weights of every step for a picture: by reference, so all are the last ones."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 2)
y = x @ torch.tensor([1.5, -2.0]) + 0.05 * torch.randn(256)
weight = nn.Parameter(torch.zeros(2))
path, batch = [], torch.empty(64, 2)
for step in range(400):
    rows = torch.randint(0, 256, (64,))
    batch.copy_(x[rows])
    views = [batch.view(-1, 2)] * 3
    loss = sum((view @ weight - y[rows]).pow(2).mean() for view in views) / len(views)
    loss.backward()
    with torch.no_grad():
        weight -= 0.02 * weight.grad
        weight.grad.zero_()
    path.append((step, weight.detach()))
    if step % 100 == 99:
        print(f"step {step} loss {loss.item():.4f} path {path[0][1].tolist()}", flush=True)
