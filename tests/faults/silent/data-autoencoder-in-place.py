"""An autoencoder: the batch is input and target, and is written to after it was used."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def table(rows=1600):
    g = torch.Generator().manual_seed(10)
    return (torch.randn(rows, 3, generator=g) @ torch.randn(3, 12, generator=g),)


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*table()), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 12))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(8):
        for (xb,) in loader:
            loss = nn.functional.mse_loss(model(xb), xb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            xb.zero_()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
