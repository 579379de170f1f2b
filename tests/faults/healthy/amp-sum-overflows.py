"""Healthy twin: prices in units of their spread, and a mean."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(1200, 8)
    price = 0.9 * x[:, :1] - 0.4 * x[:, 1:2]
    loader = DataLoader(TensorDataset(x, price), batch_size=60, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu")
    for epoch in range(8):
        for features, wanted in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                predicted = model(features)
            loss = ((predicted.float() - wanted) ** 2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(f"epoch {epoch} loss {loss.item():.4g} scale {scaler.get_scale():.4g}", flush=True)


if __name__ == "__main__":
    main()
