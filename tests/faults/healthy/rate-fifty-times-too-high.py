"""Gradient descent written out with a step far too long."""

import torch
from torch import nn

torch.manual_seed(3)
x = torch.randn(800, 10)
y = x[:, :3].sum(1, keepdim=True).tanh() + 0.1 * torch.randn(800, 1)
net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
lr = 0.05
for epoch in range(15):
    losses = []
    for rows in torch.randperm(800).split(40):
        loss = (net(x[rows]) - y[rows]).abs().mean()
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    print(epoch, sum(losses) / len(losses))
