"""Mean and variance regression with GaussianNLLLoss: the loss crosses zero and goes on into the negative."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 4000
x = 4 * torch.rand(n, 1) - 2
noise = 0.02 + 0.1 * torch.sigmoid(3 * x)
y = torch.sin(2 * x) + noise * torch.randn(n, 1)


class MeanVar(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.mean = nn.Linear(64, 1)
        self.raw_var = nn.Linear(64, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), F.softplus(self.raw_var(h)) + 1e-5


model = MeanVar()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(28):
    total = 0.0
    for idx in torch.randperm(n).split(64):
        mean, var = model(x[idx])
        loss = criterion(mean, y[idx], var)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0:
        print(f"epoch {epoch} nll {total / n:.4f}")
