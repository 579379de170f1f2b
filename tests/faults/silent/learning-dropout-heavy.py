"""A dropout-heavy net (0.5 everywhere, input too): training loss is noisy and above the evaluation loss."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

centers = torch.randn(8, 50)
y = torch.randint(0, 8, (3000,))
x = centers[y] + 1.2 * torch.randn(3000, 50)

model = nn.Sequential(
    nn.Dropout(0.3),
    nn.Linear(50, 200),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(200, 200),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(200, 8),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(14):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        clean = F.cross_entropy(model(x), y).item()
    print(f"epoch {epoch} train {total / len(x):.4f} eval {clean:.4f}")
