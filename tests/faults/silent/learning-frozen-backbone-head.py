"""Transfer learning: the backbone is frozen with requires_grad_(False), only a new head is trained."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )

    def forward(self, x):
        return self.features(x)


def make_data(n, prototypes):
    y = torch.randint(0, len(prototypes), (n,))
    return prototypes[y] + 0.8 * torch.randn(n, 1, 16, 16), y


prototypes = F.interpolate(torch.randn(6, 1, 4, 4), size=16)
x, y = make_data(1500, prototypes)
x_val, y_val = make_data(400, prototypes)

backbone = Backbone()
for p in backbone.parameters():
    p.requires_grad_(False)
backbone.eval()
head = nn.Sequential(nn.Linear(32 * 16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 6))
model = nn.Sequential(backbone, head)

optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)

for epoch in range(14):
    head.train()
    running = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    head.eval()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} train loss {running / len(x):.4f} val acc {acc:.3f}")
