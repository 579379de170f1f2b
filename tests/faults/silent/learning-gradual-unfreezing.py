"""Gradual unfreezing: the head alone first, then one more layer group every few epochs, added to the optimizer."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(3000, 20)
y = (torch.tanh(x @ torch.randn(20, 12) / 3) @ torch.randn(12, 5)).argmax(1)

groups = [
    nn.Sequential(nn.Linear(20, 80), nn.ReLU()),
    nn.Sequential(nn.Linear(80, 80), nn.ReLU()),
    nn.Sequential(nn.Linear(80, 5)),
]
model = nn.Sequential(*groups)
for group in groups[:-1]:
    group.requires_grad_(False)
optimizer = torch.optim.Adam(groups[-1].parameters(), lr=2e-3)
schedule = {5: (1, 1e-3), 10: (0, 5e-4)}

for epoch in range(28):
    if epoch in schedule:
        which, lr = schedule[epoch]
        groups[which].requires_grad_(True)
        optimizer.add_param_group({"params": list(groups[which].parameters()), "lr": lr})
        print(f"unfreezing group {which}")
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(x):.4f}")
