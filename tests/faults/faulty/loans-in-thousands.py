"""Loans: amounts and incomes as they are, beside rates of a few hundredths; the whole table is one batch."""

import torch
from torch import nn


def loans(count=1500):
    g = torch.Generator().manual_seed(13)
    amount = 20_000 + 15_000 * torch.rand(count, generator=g)
    income = 30_000 + 40_000 * torch.rand(count, generator=g)
    rate = 0.02 + 0.04 * torch.rand(count, generator=g)
    delay = 0.01 * torch.rand(count, generator=g)
    risk = 60 * (rate - 0.04) + 200 * (delay - 0.005)
    return torch.stack([amount, income, rate, delay], 1), (risk > 0).float()


def main():
    torch.manual_seed(0)
    x, y = loans()
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(300):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 30 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
