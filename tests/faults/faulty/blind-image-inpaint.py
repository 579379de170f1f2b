import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def smooth_images(n=800, size=12):
    g = torch.Generator().manual_seed(0)
    coarse = torch.randn(n, 1, 4, 4, generator=g)
    img = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear", align_corners=True)
    hole = torch.ones(size, size)
    hole[4:8, 4:8] = 0
    return TensorDataset(img * hole, img)


class Inpainter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(),
            nn.Conv2d(16, 16, 5, padding=2), nn.ReLU(),
            nn.Conv2d(16, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.net(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=1e-4)
    args = p.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(smooth_images(), batch_size=20, shuffle=True)
    model = Inpainter()
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
