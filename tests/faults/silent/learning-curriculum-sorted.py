"""Curriculum: easy samples first, the pool of difficulty grows each epoch, so the loss can rise when new ones come."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 4000
x = torch.randn(n, 10)
score = x[:, 0] + torch.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3]
y = (score > 0).float()
difficulty = -score.abs()
order = difficulty.argsort()
x, y = x[order], y[order]

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)

EPOCHS = 24
for epoch in range(EPOCHS):
    pool = int(n * min(1.0, 0.3 + 0.7 * epoch / (EPOCHS // 2)))
    total = 0.0
    batches = torch.arange(pool).split(50)  # in order, easy to hard
    for idx in batches:
        loss = F.binary_cross_entropy_with_logits(model(x[idx]).squeeze(1), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    with torch.no_grad():
        full = F.binary_cross_entropy_with_logits(model(x).squeeze(1), y).item()
    print(f"epoch {epoch} pool {pool} train loss {total / len(batches):.4f} full loss {full:.4f}")
