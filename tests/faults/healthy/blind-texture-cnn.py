import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def textures(n=2000, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    grid = torch.arange(16).float()
    img = torch.zeros(n, 1, 16, 16)
    for i in range(n):
        phase = torch.rand(1, generator=g).item() * 6.28
        if y[i] < 2:
            wave = torch.sin(grid * (0.8 + 0.9 * y[i].item()) + phase)
            img[i, 0] = wave[None, :].expand(16, 16)
        else:
            wave = torch.sin(grid * (0.8 + 0.9 * (y[i].item() - 2)) + phase)
            img[i, 0] = wave[:, None].expand(16, 16)
    return img + 0.3 * torch.randn(n, 1, 16, 16, generator=g), y


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 4),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    x, y = textures()
    train = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for img, label in train:
            optimizer.zero_grad()
            loss = criterion(model(img), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(x[1600:]).argmax(1) == y[1600:]).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train):.4f} val acc {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
