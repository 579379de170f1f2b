"""Pinball loss for the 10th, 50th and 90th percentile of heteroscedastic data."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def pinball(pred, target):
    err = target.unsqueeze(1) - pred
    return torch.maximum(QUANTILES * err, (QUANTILES - 1) * err).mean()


n = 5000
x = 6 * torch.rand(n, 1) - 3
y = (3 * torch.sin(1.5 * x) + (0.2 + 0.3 * x.abs()) * torch.randn(n, 1)).squeeze(1)

model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(25):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        loss = pinball(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0:
        with torch.no_grad():
            below = (y.unsqueeze(1) < model(x)).float().mean(0)
        print(f"epoch {epoch} pinball {total / n:.4f} coverage {[round(b, 3) for b in below.tolist()]}")
