import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def make_images(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    x = torch.randn(n, 1, 24, 24, generator=g)
    x[y == 1, :, 8:16, :] += 0.7
    x[y == 0, :, :, 8:16] += 0.7
    return TensorDataset(x, y)


def make_loaders(batch_size=64):
    labelled = make_images(60, 0)
    holdout = make_images(1600, 1)
    train_idx = list(range(48))
    train = DataLoader(Subset(labelled, train_idx), batch_size=batch_size, shuffle=True, drop_last=True)
    val = DataLoader(holdout, batch_size=batch_size)
    return train, val


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.fc = nn.Linear(512, 2)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def main():
    torch.manual_seed(0)
    train_loader, val_loader = make_loaders()
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(50):
        model.train()
        train_loss = 0.0
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item()
        train_loss /= max(len(train_loader), 1)

        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in val_loader:
                correct += (model(x).argmax(1) == y).sum().item()
        if epoch % 5 == 0:
            print(f"epoch {epoch:02d} train loss {train_loss:.4f} val acc {correct / 1600:.3f}", flush=True)


if __name__ == "__main__":
    main()
