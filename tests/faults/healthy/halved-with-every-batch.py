"""A decay meant for epochs is applied at every batch of a hand-written update."""

import torch
from torch import nn

torch.manual_seed(2)
x = torch.randn(1500, 9)
y = torch.cos(x[:, 0]) * x[:, 1] + 0.1 * torch.randn(1500)
model = nn.Sequential(nn.Linear(9, 48), nn.Tanh(), nn.Linear(48, 1))
lr = 0.1
for epoch in range(12):
    for rows in torch.randperm(1500).split(50):
        model.zero_grad()
        loss = ((model(x[rows]).squeeze(-1) - y[rows]) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
    lr *= 0.97
    print(epoch, lr, loss.item())
