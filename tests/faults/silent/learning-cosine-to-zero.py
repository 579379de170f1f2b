"""Cosine annealing of the learning rate down to exactly zero; the last epochs hardly move."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

EPOCHS = 25
x = torch.rand(3000, 2) * 4 - 2
radius = x.norm(dim=1)
y = ((radius > 0.8) & (radius < 1.6)).long()

model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS, eta_min=0.0)

for epoch in range(EPOCHS):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} lr {scheduler.get_last_lr()[0]:.5f} loss {total / len(x):.4f}")
    scheduler.step()
