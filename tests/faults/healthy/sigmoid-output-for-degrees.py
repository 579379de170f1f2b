"""Temperatures in degrees, and a network whose last layer is a sigmoid."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def main():
    torch.manual_seed(0)
    x = torch.randn(1200, 8)
    degrees = 6 * torch.sin(x[:, 0]) + 4 * x[:, 1] + 8
    loader = DataLoader(TensorDataset(x, degrees), batch_size=40, shuffle=True)
    model = Forecast()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(12):
        for weather, t in loader:
            error = nn.functional.mse_loss(model(weather), t)
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
        print(f"epoch {epoch}: error {error.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
