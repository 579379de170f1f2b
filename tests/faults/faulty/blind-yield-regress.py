import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Fields(Dataset):
    def __init__(self, n=4000):
        g = torch.Generator().manual_seed(2)
        self.x = torch.randn(n, 8, generator=g)
        y = 2 * self.x[:, 0] - self.x[:, 1] + torch.sin(3 * self.x[:, 2])
        self.y = y / y.std() + 0.1 * torch.randn(n, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class YieldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.mlp(x)


def squared_error(pred, target):
    return ((pred - target) ** 2).mean()


def main():
    torch.manual_seed(0)
    train, val = random_split(Fields(), [3200, 800])
    loader = DataLoader(train, batch_size=64, shuffle=True)
    val_loader = DataLoader(val, batch_size=200)
    model = YieldNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            loss = squared_error(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            val_mse = sum(squared_error(model(x), y).item() for x, y in val_loader) / len(val_loader)
        print(f"epoch {epoch} train {total / len(loader):.4f} val {val_mse:.4f}", flush=True)


if __name__ == "__main__":
    main()
