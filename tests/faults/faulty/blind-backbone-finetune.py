"""Two-stage transfer: pretrain on coarse textures, then adapt to a finer task (head first, then everything)."""
import argparse
import math

import torch
import torch.nn as nn


def gratings(n, n_classes, freq, noise, seed, size=16):
    """Oriented gratings; the class is the orientation."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(n_classes, (n,), generator=g)
    angle = y * math.pi / n_classes
    phase = 2 * math.pi * torch.rand(n, generator=g)
    c = torch.arange(size) - size / 2
    yy, xx = torch.meshgrid(c, c, indexing="ij")
    proj = xx[None] * angle.cos()[:, None, None] + yy[None] * angle.sin()[:, None, None]
    img = torch.sin(freq * proj + phase[:, None, None]) + noise * torch.randn(n, size, size, generator=g)
    return img.unsqueeze(1), y


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )

    def forward(self, x):
        return self.net(x)


class Net(nn.Module):
    def __init__(self, backbone, n_classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(64, n_classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def run_epochs(model, data, optimizer, epochs, tag, batch_size=64):
    x, y = data
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total = correct = 0
        for idx in torch.randperm(len(x)).split(batch_size):
            optimizer.zero_grad(set_to_none=True)
            logits = model(x[idx])
            loss = criterion(logits, y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
            correct += (logits.argmax(1) == y[idx]).sum().item()
        if epoch % 2 == 1:
            print(f"{tag} epoch {epoch + 1}: loss {total / len(x):.4f} acc {correct / len(x):.3f}", flush=True)


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--head-epochs", type=int, default=4)
    ap.add_argument("--full-epochs", type=int, default=30)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(21)

    # source task: two coarse orientations
    backbone = Backbone()
    source = Net(backbone, 2)
    run_epochs(source, gratings(1500, 2, 0.5, 0.3, seed=1), torch.optim.Adam(source.parameters(), lr=1e-3), 2, "source")

    # target task: finer stripes and more orientations
    train, test = gratings(4000, 12, 1.3, 1.2, seed=2), gratings(600, 12, 1.3, 1.2, seed=3)
    model = Net(backbone, 12)
    set_trainable(model.backbone, False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    run_epochs(model, train, optimizer, args.head_epochs, "head")
    print(f"after the head: test accuracy {accuracy(model, test):.3f}")

    set_trainable(model.backbone, True)
    run_epochs(model, train, optimizer, args.full_epochs, "full")
    print(f"after the full stage: test accuracy {accuracy(model, test):.3f}")


if __name__ == "__main__":
    main()
