"""Converges in the first second and then simply keeps running at the noise floor."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

x = torch.randn(2000, 10)
w = torch.randn(10, 1)
y = x @ w + 0.3 * torch.randn(2000, 1)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.MSELoss()

step = 0
for epoch in range(150):
    for idx in torch.randperm(len(x)).split(100):
        loss = loss_fn(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 200 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        step += 1
print(f"step {step} loss {loss.item():.4f}")
