"""Forty short passes over a loader whose workers live on."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(128, 16)
    data = TensorDataset(x, x[:, :3].sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.02)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
