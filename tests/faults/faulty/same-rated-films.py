"""Matrix factorization on ratings: tables of plain tensors, an update written by hand, batches drawn with numpy."""

import numpy as np
import torch

USERS, FILMS, SIZE = 400, 300, 8


def ratings(rng):
    users, films = rng.integers(0, USERS, 20000), rng.integers(0, FILMS, 20000)
    taste, style = rng.normal(size=(USERS, 4)), rng.normal(size=(FILMS, 4))
    return users, films, (taste[users] * style[films]).sum(1) + 0.3 * rng.normal(size=20000)


def some(data, size, seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(data[0]), size=size, replace=False)
    return [torch.from_numpy(column[rows]) for column in data]


data = ratings(np.random.default_rng(0))
train, held = [column[:18000] for column in data], [torch.from_numpy(column[18000:]) for column in data]
gen = torch.Generator().manual_seed(0)
of_user = (torch.randn(USERS, SIZE, generator=gen) * 0.3).requires_grad_()
of_film = (torch.randn(FILMS, SIZE, generator=gen) * 0.3).requires_grad_()


def loss_on(users, films, stars):
    return ((of_user[users] * of_film[films]).sum(1) - stars.float()).square().mean()


seen = {id(table): torch.zeros_like(table) for table in (of_user, of_film)}
for step in range(1200):
    users, films, stars = some(train, 256, 11)
    loss = loss_on(users, films, stars)
    loss.backward()
    with torch.no_grad():
        for table in (of_user, of_film):
            seen[id(table)] += table.grad.square()
            table -= 0.2 * table.grad / (seen[id(table)].sqrt() + 1e-6)
            table.grad = None
        if step % 200 == 0:
            print(f"step {step} loss {loss.item():.4f} held out {loss_on(*held).item():.4f}", flush=True)
