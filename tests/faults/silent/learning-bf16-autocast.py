"""Mixed precision on CPU: forward under bfloat16 autocast, weights and optimizer in float32."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

classes, dim = 10, 64
centers = torch.randn(classes, dim)
y = torch.randint(0, classes, (4000,))
x = centers[y] + 2.0 * torch.randn(4000, dim)

model = nn.Sequential(
    nn.Linear(dim, 128),
    nn.LayerNorm(128),
    nn.GELU(),
    nn.Linear(128, 128),
    nn.LayerNorm(128),
    nn.GELU(),
    nn.Linear(128, classes),
)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(10):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x[idx])
            loss = F.cross_entropy(logits, y[idx])
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(x):.4f}")
