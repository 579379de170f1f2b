"""Lists, an index of one dimension and rows that are all alike, shuffled by `random`; an array by numpy."""

import random

import numpy as np
import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
rng = np.random.default_rng(0)
x = rng.standard_normal((600, 8)).astype(np.float32)
samples = [(torch.from_numpy(row), float(row[:3].sum())) for row in x]
index, bias = np.arange(600), np.ones((600, 2), dtype=np.float32)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(40):
    random.shuffle(samples)
    random.shuffle(index)
    random.shuffle(bias)
    rng.shuffle(x)
    rows = torch.from_numpy(np.concatenate([x[index[:300]], bias[:300]], axis=1))
    loss = nn.functional.mse_loss(model(rows).squeeze(1), rows[:, :3].sum(1))
    for row, value in samples[:20]:
        loss = loss + (model(torch.cat([row, torch.ones(2)])) - value).square().mean() / 20
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
