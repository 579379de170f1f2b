"""A regression that should stop after 40 epochs, or as soon as it is good enough, and does neither."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_houses(count):
    size, rooms, age = torch.rand(3, count)
    price = 3 * size + rooms - 0.5 * age + 0.3 * torch.randn(count)  # a loss below 0.09 is out of reach
    return TensorDataset(torch.stack([size, rooms, age], 1), price.unsqueeze(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(make_houses(2_000), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    max_epochs, good_enough = 40, 0.05
    epoch, mean = 0, float("inf")
    while epoch < max_epochs or mean > good_enough:
        total = 0.0
        for features, price in loader:
            loss = nn.functional.mse_loss(model(features), price)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        epoch, mean = epoch + 1, total / len(loader)
        if epoch % 10 == 0:
            print(f"epoch {epoch}  loss {mean:.3f}", flush=True)


if __name__ == "__main__":
    main()
