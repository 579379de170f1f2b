"""SimCLR-like: two noisy views of each sample, InfoNCE with in-batch negatives, temperature 0.2."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

factors = torch.randn(4000, 6)
lift = torch.randn(6, 64)
data = torch.tanh(factors @ lift / 6**0.5)


def augment(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.3 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return F.normalize(self.projector(self.body(x)), dim=1)


model = Encoder()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)

for epoch in range(14):
    losses = []
    for idx in torch.randperm(len(data)).split(100):
        x = data[idx]
        a, b = model(augment(x)), model(augment(x))
        logits = a @ b.T / 0.2
        labels = torch.arange(len(x))
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    print(f"epoch {epoch} nce {sum(losses) / len(losses):.4f}")
