"""Inputs are shuffled with one permutation, the labels stay where they were."""

import torch
from torch import nn

torch.manual_seed(0)
N, CLASSES = 1200, 4
centres = 1.5 * torch.randn(CLASSES, 12)
y = torch.randint(CLASSES, (N,))
x = centres[y] + torch.randn(N, 12)

net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, CLASSES))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(12):
    perm = torch.randperm(N)
    x = x[perm]
    y = y[perm]
    total = 0.0
    for i in range(0, N, 40):
        out = net(x[i : i + 40])
        loss = nn.functional.cross_entropy(out, y[i : i + 40])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(epoch, total / (N / 40))
