import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_items(n, classes, dim, seed=0):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, dim, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return centers[y] + 0.6 * torch.randn(n, dim, generator=g), y


class Embedder(nn.Module):
    def __init__(self, dim, out=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 96), nn.ReLU(), nn.Linear(96, out))

    def forward(self, x):
        return self.body(x)


def pairwise(z):
    sq = (z.unsqueeze(0) - z.unsqueeze(1)).pow(2).sum(-1)
    return sq.sqrt()


def contrastive_loss(z, y, margin=2.0):
    d = pairwise(z)
    same = (y.unsqueeze(0) == y.unsqueeze(1)).float()
    pull = same * d.pow(2)
    push = (1 - same) * (margin - d).clamp(min=0).pow(2)
    return (pull + push).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(1)
    x, y = make_items(4000, 12, 32)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
    model = Embedder(32)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        running = 0.0
        for xb, yb in loader:
            loss = contrastive_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        print(f"[{epoch}] contrastive loss {running / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
