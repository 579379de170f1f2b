"""Robust regression: Huber loss, RMSprop, 5 % gross outliers, so single batches spike while the trend is down."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 4000
x = torch.randn(n, 10)
clean = 2 * torch.sin(x[:, 0]) + x[:, 1] * x[:, 2] - x[:, 3]
y = clean + 0.1 * torch.randn(n)
bad = torch.rand(n) < 0.05
y = torch.where(bad, 20 * torch.randn(n), y)

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.HuberLoss(delta=0.5)
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)

for epoch in range(36):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        loss = criterion(model(x[idx]).squeeze(1), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0:
        with torch.no_grad():
            err = (model(x).squeeze(1) - clean).abs().mean()
        print(f"epoch {epoch} huber {total / n:.4f} error against clean {err:.4f}")
