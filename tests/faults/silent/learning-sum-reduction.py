"""reduction='sum' with a learning rate scaled down to match: losses in the hundreds, healthy."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

n, BATCH = 4000, 100
x = torch.randn(n, 15)
y = torch.stack([x[:, 0] * x[:, 1], torch.sin(2 * x[:, 2]), x[:, 3:7].sum(1)], 1)

model = nn.Sequential(nn.Linear(15, 80), nn.ReLU(), nn.Linear(80, 80), nn.ReLU(), nn.Linear(80, 3))
criterion = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 / (3 * BATCH), momentum=0.9)

for epoch in range(45):
    total = 0.0
    for idx in torch.randperm(n).split(BATCH):
        loss = criterion(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 0:
        print(f"epoch {epoch} mean batch loss (sum) {total / (n / BATCH):.2f}")
