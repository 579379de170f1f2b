"""Traces of a seismometer are simulated by a small pool of helpers while a network learns to see arrivals."""

import multiprocessing as mp

import numpy as np
import torch
from torch import nn

BATCH, LENGTH, EPOCHS = 32, 128, 7


def simulate(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0, 1, (BATCH, 1, LENGTH)), rng.integers(0, 2, BATCH)
    for i in np.flatnonzero(y):
        onset = rng.integers(10, LENGTH - 40)
        x[i, 0, onset : onset + 30] += 2.5 * np.sin(np.arange(30) * 0.7) * np.exp(-np.arange(30) / 15)
    return x.astype(np.float32), y.astype(np.float32)


def main():
    torch.manual_seed(8)
    model = nn.Sequential(nn.Conv1d(1, 12, 11), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(12, 1))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    context = mp.get_context("spawn")
    with context.Pool(2) as pool:
        for epoch in range(EPOCHS):
            losses = []
            for x, y in pool.imap(simulate, range(100 * epoch, 100 * epoch + 40), chunksize=2):
                loss = nn.functional.binary_cross_entropy_with_logits(
                    model(torch.from_numpy(x))[:, 0], torch.from_numpy(y)
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch} loss {np.mean(losses):.4f}", flush=True)


if __name__ == "__main__":
    main()
