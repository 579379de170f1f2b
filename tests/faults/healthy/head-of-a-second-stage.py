"""Pretrain a small conv net on coarse patterns, then reuse it for a new set of classes."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 12


def draw(kind, n, gen):
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    shift = torch.randint(0, SIDE, (n, 1, 1), generator=gen)
    if kind == 0:
        img = ((yy + shift) % 4 < 2).float().expand(n, SIDE, SIDE)
    elif kind == 1:
        img = ((xx + shift) % 4 < 2).float().expand(n, SIDE, SIDE)
    elif kind == 2:
        img = ((xx + yy + shift) % 4 < 2).float()
    elif kind == 3:
        img = ((xx - yy + shift) % 4 < 2).float()
    elif kind == 4:
        img = (((xx + shift) // 2 + yy // 2) % 2).float()
    elif kind == 5:
        img = ((yy + shift) % 6 < 3).float()
    else:
        img = ((xx + shift) % 6 < 3).float()
    return img.unsqueeze(1) + 0.4 * torch.randn(n, 1, SIDE, SIDE, generator=gen)


def dataset(kinds, per_kind, gen):
    x = torch.cat([draw(k, per_kind, gen) for k in kinds])
    y = torch.arange(len(kinds)).repeat_interleave(per_kind)
    order = torch.randperm(len(x), generator=gen)
    return x[order], y[order]


class PatternNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.features(x))


def fit(net, opt, data, epochs, gen, tag):
    x, y = data
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in torch.randperm(len(x), generator=gen).split(32):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows)
        print(f"{tag} epoch {epoch}: loss {total / len(x):.4f}")


@torch.no_grad()
def score(net, data):
    x, y = data
    return (net(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(2)
    gen = torch.Generator().manual_seed(2)

    source = dataset([0, 1, 2, 3], 300, gen)
    net = PatternNet(classes=4)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    fit(net, opt, source, 6, gen, "pretrain")
    print(f"source accuracy {score(net, source):.3f}")

    train, test = dataset([4, 5, 6, 2, 0], 150, gen), dataset([4, 5, 6, 2, 0], 60, gen)
    for p in net.features.parameters():
        p.requires_grad = False
    net.head = nn.Linear(32, 5)
    opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-2)
    fit(net, opt, train, 12, gen, "transfer")
    print(f"target accuracy {score(net, test):.3f}")


if __name__ == "__main__":
    main()
