"""BYOL-like self-distillation: loss is minus the cosine similarity (negative), the target is an EMA copy."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

latent = torch.randn(3000, 8)
data = torch.tanh(latent @ torch.randn(8, 40) / 8**0.5)


def view(x):
    return x * (torch.rand_like(x) > 0.15) + 0.2 * torch.randn_like(x)


online = nn.Sequential(nn.Linear(40, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 32))
predictor = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=1e-3)

for epoch in range(14):
    total = 0.0
    for idx in torch.randperm(len(data)).split(100):
        a, b = view(data[idx]), view(data[idx])
        with torch.no_grad():
            ta, tb = target(a), target(b)
        pa, pb = predictor(online(a)), predictor(online(b))
        loss = -(F.cosine_similarity(pa, tb).mean() + F.cosine_similarity(pb, ta).mean()) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for pt, po in zip(target.parameters(), online.parameters()):
                pt.lerp_(po, 0.02)
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(data):.4f}")
