import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Flats(Dataset):
    def __init__(self, n=3000):
        g = torch.Generator().manual_seed(0)
        area = 30 + 120 * torch.rand(n, generator=g)
        floor = torch.randint(0, 12, (n,), generator=g).float()
        dist = 15 * torch.rand(n, generator=g)
        price = 3200 * area + 4000 * floor - 9000 * dist + 20000 * torch.randn(n, generator=g) + 120000
        x = torch.stack([area, floor, dist], 1)
        self.x = (x - x.mean(0)) / x.std(0)
        self.y = price

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i:i + 1]


class PriceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Flats(), batch_size=50, shuffle=True)
    model = PriceNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.MSELoss()
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            loss = loss_fn(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} mse {total / len(loader):.4g}", flush=True)


if __name__ == "__main__":
    main()
