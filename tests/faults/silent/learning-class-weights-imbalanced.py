"""Imbalanced three-class data (90/8/2 %) with inverse-frequency class weights in the cross-entropy."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 6000
y = torch.multinomial(torch.tensor([0.90, 0.08, 0.02]), n, replacement=True)
centers = torch.randn(3, 12)
x = centers[y] + 0.9 * torch.randn(n, 12)

counts = torch.bincount(y, minlength=3).float()
weights = counts.sum() / (3 * counts)
print("class weights", [round(w, 2) for w in weights.tolist()])

model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))
criterion = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(18):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        loss = criterion(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        pred = model(x).argmax(1)
        recalls = [(pred[y == c] == c).float().mean().item() for c in range(3)]
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss {total / n:.4f} recalls {[round(r, 3) for r in recalls]}")
