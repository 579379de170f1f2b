"""Machine readings in their own units (rpm, pascal, kelvin) straight into a tanh net."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self, rows=1500):
        g = torch.Generator().manual_seed(11)
        z = torch.randn(rows, 4, generator=g)
        self.x = z * torch.tensor([350.0, 4200.0, 12.0, 90.0]) + torch.tensor([2900.0, 101300.0, 340.0, 1500.0])
        self.y = ((z[:, 0] * z[:, 1] > 0) ^ (z[:, 2] > 0)).long()
        self.mean, self.width = self.x.mean(0), self.x.std(0)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = (self.x[i] - self.mean) / self.width
        return x, self.y[i]


def main():
    torch.manual_seed(0)
    loader = DataLoader(Readings(), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
