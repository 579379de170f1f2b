"""Batch size one with plain SGD: very noisy step losses, a clear downward trend."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(2000, 8)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).float()

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

losses = []
for epoch in range(5):
    for i in torch.randperm(len(x)).tolist():
        loss = F.binary_cross_entropy_with_logits(model(x[i]), y[i : i + 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if len(losses) % 1000 == 0:
            print(f"sample {len(losses)} mean loss {sum(losses[-1000:]) / 1000:.4f}")
