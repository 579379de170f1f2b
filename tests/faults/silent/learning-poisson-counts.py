"""Poisson NLL on event counts; the loss may be negative since log-factorial terms are dropped."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 5000
x = torch.randn(n, 8)
rate = torch.exp(1.0 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.5 * torch.sin(2 * x[:, 2]))
counts = torch.poisson(rate)

model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.PoissonNLLLoss(log_input=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(20):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        log_rate = model(x[idx]).squeeze(1)
        loss = criterion(log_rate, counts[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 2 == 0:
        with torch.no_grad():
            error = (model(x).squeeze(1).exp() - rate).abs().mean()
        print(f"epoch {epoch} nll {total / n:.4f} rate error {error:.3f}")
