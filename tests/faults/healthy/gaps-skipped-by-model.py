"""Gauges that fail now and then: the data set hands out NaN, and the model takes a running mean in its place."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Gauges(Dataset):
    def __init__(self, rows=1500):
        g = torch.Generator().manual_seed(5)
        self.x = torch.randn(rows, 8, generator=g)
        self.y = (self.x[:, 0] + self.x[:, 3] > 0).long()
        self.gaps = torch.rand(rows, 8, generator=g) < 0.02

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"gauges": self.x[i].masked_fill(self.gaps[i], 0.0), "label": self.y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.body(torch.where(torch.isnan(x), 0.0, x))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Gauges(), batch_size=50, shuffle=True)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        for batch in loader:
            loss = nn.functional.cross_entropy(net(batch["gauges"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
