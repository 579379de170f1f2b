"""Rents in a list sorted by price are cut into batches as they lie."""

import torch
from torch import nn

torch.manual_seed(3)
n = 2000
flats = torch.randn(n, 8)
rent = flats @ torch.tensor([2.0, 1.0, -1.0, 0.5, 0.0, 0.0, 1.5, -0.5]) + 0.3 * torch.randn(n)
rent, order = rent.sort()
flats = flats[order]

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    xs, ys = flats.split(50), rent.split(50)
    total = 0.0
    for xb, yb in zip(xs, ys):
        loss = (model(xb).squeeze(1) - yb).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(epoch, total / len(xs))
