import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def glyphs(n=2000, classes=6, seed=0):
    g = torch.Generator().manual_seed(seed)
    proto = (torch.rand(classes, 1, 14, 14, generator=g) > 0.5).float()
    y = torch.randint(0, classes, (n,), generator=g)
    return TensorDataset(proto[y] + 0.7 * torch.randn(n, 1, 14, 14, generator=g), y)


class GlyphNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3), nn.BatchNorm2d(24), nn.ReLU(),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(24 * 16, classes))

    def forward(self, x):
        return self.fc(self.conv(x))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train_set, val_set = random_split(glyphs(), [1600, 400])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)
    model = GlyphNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    print(f"before training: val acc {accuracy(model, val_loader):.3f}")
    for epoch in range(6):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} val acc {accuracy(model, val_loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
