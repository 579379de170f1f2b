"""Layer drop: each residual block is skipped at random in training, so its parameters get no gradient that step."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(self.norm(x))))


class DropNet(nn.Module):
    def __init__(self, dim=48, depth=6, max_drop=0.4):
        super().__init__()
        self.stem = nn.Linear(16, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.drop = [max_drop * i / (depth - 1) for i in range(depth)]
        self.head = nn.Linear(dim, 6)

    def forward(self, x):
        h = self.stem(x)
        for block, p in zip(self.blocks, self.drop):
            if self.training and torch.rand(()).item() < p:
                continue
            h = block(h)
        return self.head(h)


x = torch.randn(3000, 16)
y = (torch.tanh(x @ torch.randn(16, 10)) @ torch.randn(10, 6)).argmax(1)

model = DropNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(12):
    model.train()
    total = 0.0
    for idx in torch.randperm(len(x)).split(50):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch} loss {total / len(x):.4f}")
