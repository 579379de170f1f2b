"""Focal loss on a rare-positive detection problem: small loss values by construction."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def focal_loss(logits, target, alpha=0.25, gamma=2.0):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p_t = torch.exp(-ce)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - p_t) ** gamma * ce).mean()


n = 8000
x = torch.randn(n, 16)
y = ((x[:, 0] + 0.8 * x[:, 1] - 0.6 * x[:, 2]) > 2.2).float()
print(f"positives {y.mean():.3f}")

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
nn.init.constant_(model[-1].bias, -2.0)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(14):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        loss = focal_loss(model(x[idx]).squeeze(1), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        pred = model(x).squeeze(1) > 0
        recall = pred[y == 1].float().mean()
    print(f"epoch {epoch} focal {total / n:.5f} recall {recall:.3f}")
