"""Fine-tuning with BatchNorm frozen on purpose: BN layers in eval() and not trained, the rest in train()."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))


def freeze_bn(model):
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
            for p in m.parameters():
                p.requires_grad_(False)


def make_data(n, prototypes):
    y = torch.randint(0, len(prototypes), (n,))
    return prototypes[y] + 1.5 * torch.randn(n, 1, 12, 12), y


def epoch_loss(model, optimizer, x, y):
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


model = nn.Sequential(block(1, 16), block(16, 32), nn.Flatten(), nn.Linear(32 * 9, 8))

x, y = make_data(1500, torch.randn(8, 1, 12, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    print(f"pretrain {epoch} loss {epoch_loss(model, optimizer, x, y):.4f}")

x, y = make_data(1000, torch.randn(5, 1, 12, 12))
model[-1] = nn.Linear(32 * 9, 5)
freeze_bn(model)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-4)
for epoch in range(12):
    model.train()
    freeze_bn(model)
    print(f"finetune {epoch} loss {epoch_loss(model, optimizer, x, y):.4f}")
