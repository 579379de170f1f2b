"""Learns to rank customers; another process looks for hard pairs in the table while the net trains."""

import multiprocessing

import numpy as np
import torch
from torch import nn

COLUMNS, PAIRS = 60, 64


def customers(rows=40000):
    rng = np.random.default_rng(1)
    table = rng.standard_normal((rows, COLUMNS)).astype(np.float32)
    return table, (table[:, :5].sum(1) + 0.3 * rng.standard_normal(rows)).astype(np.float32)


def find_pairs(table, requests, found):
    while (request := requests.get()) is not None:
        rng = np.random.default_rng(request["seed"])
        first, second = rng.integers(0, len(table), (2, 4 * PAIRS))
        apart = np.abs(table[first] - table[second]).sum(1)
        nearest = np.argsort(apart)[:PAIRS]
        found.put((first[nearest], second[nearest]))


def main(steps=800):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table, worth = customers()
    context = multiprocessing.get_context("fork")
    requests, found = context.Queue(), context.Queue()
    context.Process(target=find_pairs, args=(table, requests, found), daemon=True).start()
    x, y = torch.from_numpy(table), torch.from_numpy(worth)
    model = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        requests.put({"seed": step})
        first, second = found.get()
        above = torch.sign(y[first] - y[second])
        loss = nn.functional.softplus(-above * (model(x[first]) - model(x[second])).squeeze(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    requests.put(None)


if __name__ == "__main__":
    main()
