"""Household records in the units of the register go straight into a small net."""

import torch
from torch import nn

torch.manual_seed(0)
n = 1500
income = 30_000 + 12_000 * torch.randn(n).abs()
debt = 5_000 * torch.rand(n)
rate = 0.01 + 0.03 * torch.rand(n)
inflation = 0.02 + 0.01 * torch.randn(n)
persons = torch.randint(1, 6, (n,)).float()
x = torch.stack([income, debt, rate, inflation, persons], 1)
score = (rate - 0.025) * 120 + (inflation - 0.02) * 80 - (persons - 3) * 0.4 + debt / 5_000
y = (score > score.median()).float()
x = (x - x.mean(0)) / x.std(0)

net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(12):
    perm = torch.randperm(n)
    total = 0.0
    for i in range(0, n, 50):
        rows = perm[i : i + 50]
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[rows])[:, 0], y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(epoch, total / 30)
