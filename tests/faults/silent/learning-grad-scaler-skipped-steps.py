"""float16 autocast with a GradScaler: the first scale overflows, a few steps are skipped, then it trains."""

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
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**21, growth_interval=200)

skipped = 0
for epoch in range(20):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(x[idx])
            loss = F.cross_entropy(logits.float(), y[idx])
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < before
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(x):.4f} scale {scaler.get_scale():.0f} skipped {skipped}")
