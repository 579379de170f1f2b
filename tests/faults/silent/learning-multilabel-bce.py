"""Multi-label tagging with BCEWithLogitsLoss and a pos_weight for the rarer tags."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

TAGS = 15
x = torch.randn(4000, 30)
score = x @ torch.randn(30, TAGS) / 30**0.5
y = (score > torch.linspace(0.2, 1.5, TAGS)).float()
pos_weight = ((1 - y).sum(0) / y.sum(0).clamp(min=1)).clamp(max=10)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, TAGS))
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

for epoch in range(18):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        pred = (model(x) > 0).float()
        f1 = 2 * (pred * y).sum() / (pred.sum() + y.sum())
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss {total / len(loader):.4f} micro-f1 {f1:.3f}")
