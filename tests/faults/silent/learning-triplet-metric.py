"""Metric learning with a triplet margin loss; many triplets become easy, so the loss tends to zero."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

CLASSES, DIM = 12, 40
centers = torch.randn(CLASSES, DIM)


def sample(label):
    return centers[label] + 1.2 * torch.randn(len(label), DIM)


def get_triplets(n=64):
    anchor = torch.randint(0, CLASSES, (n,))
    negative = (anchor + torch.randint(1, CLASSES, (n,))) % CLASSES
    return sample(anchor), sample(anchor), sample(negative)


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(DIM, 96), nn.ReLU(), nn.Linear(96, 16))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


model = Embed()
criterion = nn.TripletMarginLoss(margin=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)

avg = None
for step in range(1000):
    a, p, n = get_triplets()
    loss = criterion(model(a), model(p), model(n))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    avg = loss.item() if avg is None else 0.97 * avg + 0.03 * loss.item()
    if step % 100 == 0 or step == 999:
        print(f"step {step} triplet {avg:.4f}")
