"""Activation checkpointing (use_reentrant=False) around each block: every block's forward runs twice per step."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class Net(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(20, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(3))
        self.head = nn.Linear(dim, 10)

    def forward(self, tokens):
        h = self.emb(tokens)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False)
        return self.head(h.mean(1))


def get_batch(n=32):
    tokens = torch.randint(0, 20, (n, 12))
    return tokens, (tokens == 3).sum(1).clamp(max=4) + 5 * (tokens == 7).any(1).long()


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
avg = None
for step in range(350):
    tokens, y = get_batch()
    loss = F.cross_entropy(model(tokens), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
    if step % 35 == 0 or step == 349:
        print(f"step {step} loss {avg:.4f}")
