"""Candidates are scored in a pool of processes; the score of one smooths its curve with a routine in C."""

import ctypes
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch import nn


def smooth(curve, times):
    """Each point becomes the mean of itself and its neighbour, in place."""
    width = ctypes.sizeof(ctypes.c_double)
    for _ in range(times):
        head = curve[:-1].copy()
        ctypes.memmove(curve.ctypes.data, head.ctypes.data, head.nbytes)
        curve[:-1] = (head + curve[1:]) / 2
        ctypes.memset(curve.ctypes.data + width * 60_000_000 * (times > 4000), 0, width)
    return curve


def score(job):
    seed, times = job
    rng = np.random.default_rng(seed)
    return float(np.abs(np.diff(smooth(rng.normal(size=400).cumsum(), times))).mean())


def main():
    torch.manual_seed(0)
    guess = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(guess.parameters(), lr=1e-2)
    with ProcessPoolExecutor(2) as pool:
        for step in range(30):
            times = [1 + step + k for k in range(8)]
            scores = list(pool.map(score, [(step * 8 + k, count) for k, count in enumerate(times)]))
            x, y = torch.tensor(times).float().unsqueeze(1) / 40, torch.tensor(scores).float().unsqueeze(1)
            for _ in range(20):
                loss = (guess(x) - y).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
