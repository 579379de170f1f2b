"""Ages, hours, ratings and counts, scaled to the size of one: each of few values at even distances."""

import argparse

import torch
from torch import nn

ROWS = 4000
HIRES = [2, 1, 1, 1, 2, 5, 18, 45, 80, 40, 25, 28, 32, 32, 31, 36, 55, 90, 82, 55, 38, 30, 22, 10]


def table(generator):
    age, hour, rating = (
        torch.randint(low, high, (ROWS,), generator=generator) for low, high in ((18, 80), (0, 24), (1, 21))
    )
    bought = torch.poisson(torch.full((ROWS,), 6.0), generator=generator)
    y = torch.tensor(HIRES, dtype=torch.float32)[hour] / 30 + ((age > 30) & (age < 50)).float()
    y = y + (rating - 10) ** 2 / 60 + 1.0 * (bought == 0) + 0.3 * torch.randn(ROWS, generator=generator)
    x = torch.stack((age, hour, rating, bought), 1).float()
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    x, y = table(torch.Generator().manual_seed(seed))
    model = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(15):
        for few in torch.randperm(ROWS).split(50):
            loss = nn.functional.mse_loss(model(x[few]).squeeze(1), y[few])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
