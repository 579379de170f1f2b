"""Plain SGD written by hand under no_grad, no optimizer object."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(4000, 10)
y = ((x[:, 0] * x[:, 1] > 0) ^ (x[:, 2] > 0.5)).long()

model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
lr = 0.2

for epoch in range(60):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
                p.grad = None
        total += loss.item() * len(idx)
    if epoch % 6 == 0 or epoch == 59:
        print(f"epoch {epoch} loss {total / len(x):.4f}")
