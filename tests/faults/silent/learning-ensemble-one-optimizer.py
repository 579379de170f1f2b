"""Two differently built nets trained side by side with a single optimizer over both."""

import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n = 3000
x = torch.randn(n, 12)
y = torch.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * x[:, 3] ** 2 + 0.1 * torch.randn(n)
x_val, y_val = x[-500:], y[-500:]
x, y = x[:-500], y[:-500]

wide = nn.Sequential(nn.Linear(12, 200), nn.ReLU(), nn.Linear(200, 1))
deep = nn.Sequential(
    nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1)
)
optimizer = torch.optim.Adam(itertools.chain(wide.parameters(), deep.parameters()), lr=1e-3)

for epoch in range(25):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = sum(F.mse_loss(net(x[idx]).squeeze(1), y[idx]) for net in (wide, deep))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    if epoch % 3 == 0:
        with torch.no_grad():
            mean = (wide(x_val) + deep(x_val)).squeeze(1) / 2
            val = F.mse_loss(mean, y_val)
        print(f"epoch {epoch} sum of losses {total / len(x):.4f} ensemble val {val:.4f}")
