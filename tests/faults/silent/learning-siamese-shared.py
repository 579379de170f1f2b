"""A siamese net with shared weights and a contrastive (Hadsell) loss on same/different pairs."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

IDENTITIES = 30
faces = torch.randn(IDENTITIES, 48)


def get_pairs(n=64):
    a = torch.randint(0, IDENTITIES, (n,))
    same = torch.rand(n) < 0.5
    b = torch.where(same, a, (a + torch.randint(1, IDENTITIES, (n,))) % IDENTITIES)
    x1 = faces[a] + 0.9 * torch.randn(n, 48)
    x2 = faces[b] + 0.9 * torch.randn(n, 48)
    return x1, x2, same.float()


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, 24))

    def forward(self, x1, x2):
        return F.pairwise_distance(self.tower(x1), self.tower(x2))


def contrastive(distance, same, margin=2.0):
    return (same * distance**2 + (1 - same) * F.relu(margin - distance) ** 2).mean()


model = Siamese()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for step in range(1500):
    x1, x2, same = get_pairs()
    distance = model(x1, x2)
    loss = contrastive(distance, same)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 150 == 0 or step == 1499:
        acc = ((distance < 1.0).float() == same).float().mean()
        recent = losses[-100:]
        print(f"step {step} loss {sum(recent) / len(recent):.4f} pair acc {acc:.3f}")
