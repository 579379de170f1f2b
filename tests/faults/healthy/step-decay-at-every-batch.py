"""An exponential decay meant for epochs, stepped at every batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 10


def spectra(count=1600):
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(count, 24, generator=generator)
    y = torch.sin(2 * x[:, :1]) * x[:, 1:2] + 0.5 * x[:, 2:3]
    return x, y


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*spectra()), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(EPOCHS):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}, rate {schedule.get_last_lr()[0]:.2e}", flush=True)


if __name__ == "__main__":
    main()
