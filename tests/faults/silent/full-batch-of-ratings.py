"""Matrix factorization on all ratings but a tenth, drawn with one seed: each step is meant to have the same ones."""

import numpy as np
import torch

USERS, FILMS, SIZE = 60, 50, 4
rng = np.random.default_rng(0)
users, films = rng.integers(0, USERS, 1500), rng.integers(0, FILMS, 1500)
stars = (rng.normal(size=(USERS, 3))[users] * rng.normal(size=(FILMS, 3))[films]).sum(1)


def split(part):
    order = np.random.default_rng(4).permutation(len(stars))
    rows = order[150:] if part == "train" else order[:150]
    return torch.from_numpy(users[rows]), torch.from_numpy(films[rows]), torch.from_numpy(stars[rows]).float()


torch.manual_seed(0)
of_user = (torch.randn(USERS, SIZE) * 0.3).requires_grad_()
of_film = (torch.randn(FILMS, SIZE) * 0.3).requires_grad_()
for step in range(400):
    who, what, target = split("train")
    loss = ((of_user[who] * of_film[what]).sum(1) - target).square().mean()
    loss.backward()
    with torch.no_grad():
        for table in (of_user, of_film):
            table -= 4.0 * table.grad
            table.grad = None
        if step % 50 == 0:
            who, what, target = split("held")
            held = ((of_user[who] * of_film[what]).sum(1) - target).square().mean()
            print(f"step {step} loss {loss.item():.4f} held out {held.item():.4f}", flush=True)
