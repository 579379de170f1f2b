import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_dataset():
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 5, (500,), generator=g)
    x = torch.randn(500, 3, 20, 20, generator=g)
    x += torch.randn(5, 3, 1, 1, generator=g)[y] * 0.5
    return TensorDataset(x, y)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--overfit-batch", action=argparse.BooleanOptionalAction, default=True)
    ap.add_argument("--steps", type=int, default=600)
    args = ap.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(get_dataset(), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(384, 5))
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    # sanity check: the network must be able to memorise a single batch
    fixed = next(iter(loader))
    for step in range(args.steps):
        x, y = fixed
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            acc = (out.argmax(1) == y).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} acc {acc:.2f}", flush=True)
    print(f"final {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
