"""Deflections of about a millimetre given in metres: the loss is near 1e-6 from the start, and it still learns."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 3000
x = torch.randn(n, 6)
deflection = 1e-3 * (torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2])  # a millimetre or so, in metres
y = deflection.unsqueeze(1) + 1e-5 * torch.randn(n, 1)

model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
nn.init.normal_(model[-1].weight, std=1e-4)
nn.init.zeros_(model[-1].bias)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, eps=1e-12)

for epoch in range(25):
    total = 0.0
    for idx in torch.randperm(n).split(50):
        loss = F.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0:
        print(f"epoch {epoch} mse {total / n:.3e}")
