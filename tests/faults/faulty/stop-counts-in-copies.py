"""Factors of a rating table, trained by three processes on shared weights; main watches the error until enough is done."""
import time

import torch
import torch.multiprocessing as mp
from torch import nn

USERS, ITEMS, TOTAL = 120, 80, 900


class Factors(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.users = nn.Embedding(USERS, width)
        self.items = nn.Embedding(ITEMS, width)

    def forward(self, pairs):
        return (self.users(pairs[:, 0]) * self.items(pairs[:, 1])).sum(1)


def ratings(n, seed):
    made = torch.Generator().manual_seed(9)
    users, items = torch.randn(USERS, 3, generator=made), torch.randn(ITEMS, 3, generator=made)
    g = torch.Generator().manual_seed(seed)
    pairs = torch.stack([torch.randint(USERS, (n,), generator=g), torch.randint(ITEMS, (n,), generator=g)], 1)
    return pairs, (users[pairs[:, 0]] * items[pairs[:, 1]]).sum(1)


def learn(number, model, progress, stop):
    torch.set_num_threads(1)
    torch.manual_seed(number)
    pairs, given = ratings(8000, number)
    opt = torch.optim.SGD(model.parameters(), lr=4.0)
    while not stop.is_set():
        rows = torch.randint(len(pairs), (128,))
        loss = nn.functional.mse_loss(model(pairs[rows]), given[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        progress["done"] += 1
        time.sleep(0.003)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    context = mp.get_context("fork")
    model = Factors()
    model.share_memory()
    progress = {"done": 0}
    stop = context.Event()
    learners = [context.Process(target=learn, args=(n, model, progress, stop), daemon=True) for n in range(3)]
    for each in learners:
        each.start()
    pairs, given = ratings(2000, 77)
    while progress["done"] < TOTAL:
        time.sleep(0.5)
        with torch.no_grad():
            error = nn.functional.mse_loss(model(pairs), given).item()
        print(f"error {error:.3f}", flush=True)
    stop.set()
    for each in learners:
        each.join()
    print("enough", flush=True)


if __name__ == "__main__":
    main()
