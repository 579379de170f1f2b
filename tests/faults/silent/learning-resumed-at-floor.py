"""Resumed from a converged checkpoint: the loss is at its noise floor from the first step and stays there."""

import argparse
import io

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(3000, 8)
y = x @ torch.randn(8, 1) + 0.5 * torch.randn(3000, 1)

model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

# what an earlier run left: the least-squares solution
solution = torch.linalg.lstsq(torch.cat([x, torch.ones(3000, 1)], 1), y).solution
buffer = io.BytesIO()
torch.save({"weight": solution[:-1].T.contiguous(), "bias": solution[-1]}, buffer)
buffer.seek(0)
model.load_state_dict(torch.load(buffer))

loss_fn = nn.MSELoss()
for epoch in range(60):
    total = 0.0
    for idx in torch.randperm(len(x)).split(64):
        loss = loss_fn(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 6 == 0:
        print(f"epoch {epoch} mse {total / len(x):.4f} (noise variance 0.25)")
