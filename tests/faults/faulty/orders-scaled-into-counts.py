"""Whether a shop places another order, from counts of the last month scaled to 0..1."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

COUNTS = ["orders", "returns", "visits", "tickets", "coupons", "items"]


def shops(rows=3000):
    rng = np.random.default_rng(3)
    usual = np.array([20, 4, 150, 3, 8, 60])
    counts = rng.poisson(usual * rng.gamma(3.0, 1 / 3, size=(rows, len(COUNTS))))
    score = (counts / usual) @ np.array([1.5, -1.2, 0.8, -1.0, 0.5, 0.4]) - 1.0
    again = rng.random(rows) < 1 / (1 + np.exp(-3 * score))
    return counts, again.astype(np.float32)


def scaled(counts):
    low, high = counts.min(0), counts.max(0)
    table = np.zeros_like(counts)
    for column in range(counts.shape[1]):
        table[:, column] = (counts[:, column] - low[column]) / (high[column] - low[column])
    return torch.from_numpy(table).float()


def main():
    torch.manual_seed(0)
    counts, again = shops()
    loader = DataLoader(TensorDataset(scaled(counts), torch.from_numpy(again)), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(len(COUNTS), 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(20):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
