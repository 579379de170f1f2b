import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Housing(Dataset):
    """Synthetic census blocks: rooms, bedrooms, households, income, age."""

    def __init__(self, n=6000, seed=3):
        g = torch.Generator().manual_seed(seed)
        self.rooms = torch.randint(0, 40, (n,), generator=g).float()
        self.households = torch.randint(0, 60, (n,), generator=g).float()
        self.income = torch.rand(n, generator=g) * 8 + 1
        self.age = torch.rand(n, generator=g)
        density = self.rooms / (self.households + 1)
        self.price = 0.4 * self.income + 0.3 * density.clamp(max=5) - 0.5 * self.age
        self.price = (self.price - self.price.mean()) / self.price.std()
        self.price += 0.05 * torch.randn(n, generator=g)

    def __len__(self):
        return len(self.price)

    def __getitem__(self, i):
        per_household = self.rooms[i] / self.households[i]
        x = torch.stack([
            per_household.clamp(max=5) - 1.0,
            self.rooms[i] / 20 - 1,
            self.households[i] / 30 - 1,
            (self.income[i] - 5) / 2.3,
            (self.age[i] - 0.5) / 0.3,
        ])
        return x, self.price[i]


class Regressor(nn.Module):
    def __init__(self, d=5, h=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def run_epoch(model, loader, opt=None):
    total = 0.0
    for x, y in loader:
        pred = model(x)
        loss = nn.functional.mse_loss(pred, y)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(0)
    train, val = random_split(Housing(), [5000, 1000])
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    val_loader = DataLoader(val, batch_size=256)
    model = Regressor()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10):
        tr = run_epoch(model, train_loader, opt)
        with torch.no_grad():
            va = run_epoch(model, val_loader)
        print(f"epoch {epoch:02d} train {tr:.4f} val {va:.4f}")


if __name__ == "__main__":
    main()
