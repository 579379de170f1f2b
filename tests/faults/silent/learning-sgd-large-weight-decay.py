"""SGD with a strong weight decay (5e-2): weights shrink towards small norms while the fit is found."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

centers = 1.5 * torch.randn(5, 30)
y = torch.randint(0, 5, (2500,))
x = centers[y] + 1.5 * torch.randn(2500, 30)

model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-2)

for epoch in range(40):
    total, hits = 0.0, 0
    for idx in torch.randperm(len(x)).split(50):
        logits = model(x[idx])
        loss = F.cross_entropy(logits, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
        hits += (logits.argmax(1) == y[idx]).sum().item()
    if epoch % 4 == 0 or epoch == 39:
        norm = sum(p.norm().item() ** 2 for p in model.parameters()) ** 0.5
        print(f"epoch {epoch} loss {total / len(x):.4f} acc {hits / len(x):.3f} |w| {norm:.2f}")
