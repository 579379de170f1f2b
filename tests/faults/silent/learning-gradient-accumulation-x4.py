"""Gradients accumulated over four micro-batches, the loss divided by four, one step per four backwards."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

ACCUM = 4

x = torch.randn(4096, 32)
w1, w2 = torch.randn(32, 16) / 32**0.5, torch.randn(16, 5)
y = (torch.tanh(2 * x @ w1) @ w2).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

net = nn.Sequential(nn.Linear(32, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 5))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(12):
    total, correct = 0.0, 0
    opt.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        out = net(xb)
        loss = loss_fn(out, yb)
        (loss / ACCUM).backward()
        total += loss.item() * len(xb)
        correct += (out.argmax(1) == yb).sum().item()
        if (i + 1) % ACCUM == 0:
            opt.step()
            opt.zero_grad()
    print(f"epoch {epoch}  loss {total / len(x):.4f}  acc {correct / len(x):.3f}")
