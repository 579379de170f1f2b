import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(args):
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(1)
    x = torch.randn(8000, 40, generator=g)
    y = (x @ torch.randn(40, 7, generator=g) + 2 * torch.randn(8000, 7, generator=g)).argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, num_workers=args.workers)
    model = nn.Sequential(nn.Linear(40, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 7))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, done = 0, False
    for epoch in range(args.epochs):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.max_steps:
                done = True
                break
        if done:
            break
    print(f"stopped in epoch {epoch} at step {step}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=1000)
    p.add_argument("--max-steps", type=int, default=1330)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=0)
    train(p.parse_args())
