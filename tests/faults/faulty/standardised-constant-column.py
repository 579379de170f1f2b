"""Fault: one column of the table is constant; standardising divides by its spread of 0."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load_table(rows=1200):
    g = torch.Generator().manual_seed(5)
    table = torch.randn(rows, 9, generator=g) * torch.tensor([3.0, 1, 20, 1, 0, 5, 1, 2, 1])
    table[:, 4] = 1.0  # firmware version: the same for all devices of this batch
    target = table[:, 0] * 0.4 - table[:, 2] * 0.05 + 0.1 * torch.randn(rows, generator=g)
    return table, target.unsqueeze(1)


def standardise(table):
    return (table - table.mean(0)) / table.std(0)


def main():
    torch.manual_seed(0)
    table, target = load_table()
    features = standardise(table)
    loader = DataLoader(TensorDataset(features, target), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(9, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(6):
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(batch), wanted)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
