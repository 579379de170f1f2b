"""Twenty pre-norm residual blocks in an MLP."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, dim)
        self.fc2 = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.fc2(F.relu(self.fc1(self.norm(x))))


model = nn.Sequential(
    nn.Linear(10, 32),
    *[Residual(32) for _ in range(20)],
    nn.LayerNorm(32),
    nn.Linear(32, 1),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

x = torch.randn(2000, 10)
y = torch.sin(2 * x[:, 0]) * x[:, 1] + x[:, 2:5].prod(1) + 0.05 * torch.randn(2000)

for epoch in range(14):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.mse_loss(model(x[idx]).squeeze(1), y[idx])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} mse {total / len(x):.4f}")
