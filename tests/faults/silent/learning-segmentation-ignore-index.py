"""Pixel-wise segmentation with unlabelled borders marked 255 and ignore_index=255."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

SIDE = 24


def make_scene(n):
    image = 0.4 * torch.randn(n, 1, SIDE, SIDE)
    mask = torch.zeros(n, SIDE, SIDE, dtype=torch.long)
    for i in range(n):
        for label, level in ((1, 1.0), (2, -1.0)):
            r, c = torch.randint(0, SIDE - 10, (2,)).tolist()
            h, w = torch.randint(6, 10, (2,)).tolist()
            image[i, 0, r : r + h, c : c + w] += level
            mask[i, r : r + h, c : c + w] = label
    mask[:, :2] = 255
    mask[:, -2:] = 255
    return image, mask


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(12, 24, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.out = nn.Conv2d(24, 3, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.mid(F.max_pool2d(a, 2))
        return self.out(torch.cat([a, self.up(b)], dim=1))


images, masks = make_scene(500)
model = TinyUNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(9):
    total = 0.0
    batches = torch.randperm(len(images)).split(10)
    for idx in batches:
        loss = F.cross_entropy(model(images[idx]), masks[idx], ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        keep = masks[:100] != 255
        acc = (model(images[:100]).argmax(1) == masks[:100])[keep].float().mean()
    print(f"epoch {epoch} loss {total / len(batches):.4f} pixel acc {acc:.3f}")
