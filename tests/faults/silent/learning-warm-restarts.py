"""CosineAnnealingWarmRestarts: the loss bumps up a little at each restart and comes down again."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(2500, 12)
y = (torch.sin(2 * x[:, :6]) @ torch.randn(6, 5) + 0.5 * x[:, 6:11]).argmax(1)

model = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=6, T_mult=2, eta_min=1e-4)

for epoch in range(30):
    total = 0.0
    batches = torch.randperm(len(x)).split(50)
    for i, idx in enumerate(batches):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(epoch + i / len(batches))
        total += loss.item() * len(idx)
    if epoch % 2 == 0:
        print(f"epoch {epoch} lr {optimizer.param_groups[0]['lr']:.4f} loss {total / len(x):.4f}")
