"""Tabular regression; more workers than the light dataset needs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_data(n=60_000, features=40):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(n, features, generator=g)
    w = torch.randn(features, 1, generator=g)
    y = torch.sin(x @ w) + 0.1 * torch.randn(n, 1, generator=g)
    return TensorDataset(x, y)


class MLP(nn.Module):
    def __init__(self, features=40, hidden=512):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.net(x)


def train_one_epoch(model, loader, optimizer, epoch):
    model.train()
    total = 0.0
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if epoch == 0 and step == 3:
            print("READY", flush=True)
    return total / len(loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = DataLoader(
        make_data(), batch_size=256, shuffle=True, num_workers=8, persistent_workers=True, prefetch_factor=4
    )
    model = MLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(100_000):
        mean_loss = train_one_epoch(model, loader, optimizer, epoch)
        print(f"epoch {epoch}: mse {mean_loss:.4f}", flush=True)
