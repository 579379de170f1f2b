"""Layer-wise learning rates: the early layers move 100 times slower than the head, biases without decay."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

centers = torch.randn(7, 24)
y = torch.randint(0, 7, (3500,))
x = centers[y] + 1.4 * torch.randn(3500, 24)

layers = nn.ModuleList([nn.Linear(24, 96), nn.Linear(96, 96), nn.Linear(96, 7)])
groups = []
for layer, lr in zip(layers, (2e-5, 2e-4, 2e-3)):
    groups.append({"params": [layer.weight], "lr": lr, "weight_decay": 1e-2})
    groups.append({"params": [layer.bias], "lr": lr, "weight_decay": 0.0})
optimizer = torch.optim.AdamW(groups)


def forward(x):
    for layer in layers[:-1]:
        x = F.relu(layer(x))
    return layers[-1](x)


for epoch in range(18):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(forward(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss {total / len(x):.4f}")
