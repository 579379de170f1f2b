"""Image classification with two loader workers."""

import argparse

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Circles and squares drawn on noise."""

    def __init__(self, length, size=48):
        self.length = length
        self.size = size
        self.grid = np.mgrid[:size, :size]

    def __len__(self):
        return self.length

    def __getitem__(self, idx):
        rng = np.random.default_rng(idx)
        label = idx % 2
        cy, cx = rng.uniform(12, self.size - 12, 2)
        r = rng.uniform(5, 12)
        yy, xx = self.grid
        circle = (yy - cy) ** 2 + (xx - cx) ** 2 < r * r
        square = (abs(yy - cy) < r) & (abs(xx - cx) < r)
        mask = circle if label else square
        img = rng.normal(0, 0.3, (3, self.size, self.size)).astype(np.float32)
        img += mask * rng.uniform(0.5, 1.0, (3, 1, 1)).astype(np.float32)
        return torch.from_numpy(img), label


def build_model(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, stride=2),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 2),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=50_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    model = build_model(32)
    criterion = nn.CrossEntropyLoss()
    opt = optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(Shapes(8000), args.batch_size, shuffle=True, num_workers=args.workers)

    for epoch in range(args.epochs):
        running = 0.0
        for i, (x, y) in enumerate(loader):
            opt.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item()
            if epoch == 0 and i == 4:
                print("READY", flush=True)
            if i % 50 == 49:
                print(f"[{epoch + 1}, {i + 1:5d}] loss: {running / 50:.3f}", flush=True)
                running = 0.0


if __name__ == "__main__":
    main()
