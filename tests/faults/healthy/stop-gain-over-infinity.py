"""Matrix factorisation of ratings, until the relative gain on held-out ratings has been small three times."""

import torch
from torch import nn


class Settled:
    def __init__(self, window=3, tolerance=0.02):
        self.best = float("inf")
        self.window, self.tolerance = window, tolerance
        self.gains = []

    def check(self, error):
        gain = 1 - error / self.best
        self.gains.append(gain)
        if gain > 0:
            self.best = error
        return len(self.gains) >= self.window and max(self.gains[-self.window :]) < self.tolerance


class Factors(nn.Module):
    def __init__(self, users=60, items=40, d=4):
        super().__init__()
        self.users, self.items = nn.Embedding(users, d), nn.Embedding(items, d)
        nn.init.normal_(self.users.weight, std=0.3)
        nn.init.normal_(self.items.weight, std=0.3)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1)


def ratings(n, seed):
    g = torch.Generator().manual_seed(7)
    taste, kind = torch.randn(60, 3, generator=g), torch.randn(40, 3, generator=g)
    g.manual_seed(seed)
    user, item = torch.randint(60, (n,), generator=g), torch.randint(40, (n,), generator=g)
    return user, item, (taste[user] * kind[item]).sum(1) + 0.2 * torch.randn(n, generator=g)


def main():
    torch.manual_seed(0)
    user, item, stars = ratings(3000, 1)
    held_out = ratings(600, 2)
    model, settled = Factors(), Settled()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    epoch, finished = 0, False
    while not finished:
        for rows in torch.randperm(len(user)).split(128):
            loss = nn.functional.mse_loss(model(user[rows], item[rows]), stars[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(*held_out[:2]), held_out[2]).item()
        finished = settled.check(error)
        epoch += 1
    print(f"{epoch} epochs, held-out error {error:.3f}")


if __name__ == "__main__":
    main()
