"""Learns from augmented spectra; an executor makes the batches, each call with all spectra."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
from torch import nn

LENGTH, KINDS, BATCH = 200, 4, 32


def spectra(count=12000):
    rng = np.random.default_rng(2)
    kind = rng.integers(0, KINDS, count)
    place = np.linspace(0, 1, LENGTH)
    peak = np.exp(-(((place - 0.2 - 0.2 * kind[:, None]) / 0.05) ** 2))
    return (peak + 0.3 * rng.standard_normal((count, LENGTH))).astype(np.float32), kind


SPECTRA, KIND = spectra()


def shifted(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(SPECTRA), BATCH)
    moved = np.stack([np.roll(SPECTRA[row], rng.integers(-6, 7)) for row in rows])
    return moved, KIND[rows]


def main(steps=900):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(LENGTH, 64), nn.ReLU(), nn.Linear(64, KINDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        for step, (x, y) in enumerate(pool.map(shifted, range(steps))):
            loss = nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 99:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
