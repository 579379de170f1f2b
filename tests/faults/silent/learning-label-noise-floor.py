"""30 % of the labels are random: the loss falls and then rests on a high floor, as it must."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

DIM, CLASSES = 20, 5
centers = torch.randn(CLASSES, DIM)


def get_batch(n=64):
    y = torch.randint(0, CLASSES, (n,))
    x = centers[y] + torch.randn(n, DIM)
    noisy = torch.where(torch.rand(n) < 0.3, torch.randint(0, CLASSES, (n,)), y)
    return x, noisy


model = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, CLASSES))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for step in range(2500):
    x, y = get_batch()
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (step + 1) % 250 == 0 or step == 0:
        recent = losses[-250:]
        print(f"step {step + 1} loss {sum(recent) / len(recent):.4f}")
