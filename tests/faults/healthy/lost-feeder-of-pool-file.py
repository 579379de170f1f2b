"""Rows come from a process that maps the file they lie in; after each round what is left is written back."""

import multiprocessing as mp
import os
import tempfile

import numpy as np
import torch
from torch import nn


def feed(path, rounds_done, out):
    rng, seen = np.random.default_rng(1), -1
    while True:
        if rounds_done.value != seen:
            seen = rounds_done.value
            rows = np.load(path, mmap_mode="r")
        for _ in range(20):
            out.send(np.asarray(rows[np.sort(rng.integers(0, len(rows), 32))]))


def keep(path, rows):
    np.save(path + ".new.npy", rows)
    os.replace(path + ".new.npy", path)  # who has mapped the old one keeps it


def main():
    torch.manual_seed(0)
    rows = np.random.default_rng(0).normal(size=(20_000, 16)).astype(np.float32)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.npy")
        keep(path, rows)
        rounds_done, (here, there) = mp.Value("i", 0), mp.Pipe(duplex=False)
        feeder = mp.Process(target=feed, args=(path, rounds_done, there), daemon=True)
        feeder.start()
        there.close()
        for _ in range(4):
            for _ in range(120):
                x = torch.from_numpy(here.recv())
                loss = (model(x) - x).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            rows = rows[: len(rows) // 3]
            keep(path, rows)
            rounds_done.value += 1
        feeder.terminate()
        feeder.join()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
