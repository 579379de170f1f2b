"""LoRA on a frozen net: A random, B zero, so the adapters start as a no-op and A's first gradient is exactly zero."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_a.T) @ self.lora_b.T


def mlp():
    return nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6))


# pre-train on task one, quickly
x = torch.randn(4000, 24)
teacher = torch.randn(24, 6)
net = mlp()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(400):
    idx = torch.randint(0, len(x), (64,))
    loss = F.cross_entropy(net(x[idx]), (x[idx] @ teacher).argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"pretrained: loss {loss.item():.4f}")

# adapt to a shifted task
shifted = teacher + 0.8 * torch.randn(24, 2) @ torch.randn(2, 6)
for i in (0, 2, 4):
    net[i] = LoRALinear(net[i])
trainable = [p for p in net.parameters() if p.requires_grad]
print("trainable", sum(p.numel() for p in trainable), "of", sum(p.numel() for p in net.parameters()))
opt = torch.optim.AdamW(trainable, lr=4e-3, weight_decay=0.0)
for step in range(1500):
    idx = torch.randint(0, len(x), (64,))
    loss = F.cross_entropy(net(x[idx]), (x[idx] @ shifted).argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 150 == 0:
        with torch.no_grad():
            full = F.cross_entropy(net(x), (x @ shifted).argmax(1))
        print(f"step {step} adapt loss {full.item():.4f}")
