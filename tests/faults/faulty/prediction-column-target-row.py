"""House prices from five numbers; predictions come as a column, prices as a row."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def houses(count=1200):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(count, 5, generator=generator)
    price = x @ torch.tensor([1.5, -2.0, 0.7, 0.0, 1.0]) + 0.1 * torch.randn(count, generator=generator)
    return x, price


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*houses()), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.MSELoss()
    for epoch in range(12):
        total = 0.0
        for x, price in loader:
            predicted = model(x)
            loss = criterion(predicted, price)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
