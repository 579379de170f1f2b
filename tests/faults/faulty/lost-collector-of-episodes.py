"""Walkers collect episodes in processes of their own; the learner reads them from a pipe each."""

import multiprocessing as mp

import numpy as np
import torch
from torch import nn


class Corridor:
    def __init__(self, seed):
        self.rng, self.signs = np.random.default_rng(seed), {0: 1.0, 1: -1.0, 2: 1.0}

    def episode(self, length):
        kinds = self.rng.integers(0, 4, length)
        at = self.rng.normal(size=(length, 4)).astype(np.float32)
        gain = np.array([self.signs[int(kind)] * row[0] for kind, row in zip(kinds, at)], dtype=np.float32)
        return np.concatenate([at, np.eye(4, dtype=np.float32)[kinds]], 1), gain


def collect(seed, out):
    corridor = Corridor(seed)
    for number in range(10_000):
        out.send(corridor.episode(1 + number // 40))


def main():
    torch.manual_seed(0)
    pipes, walkers = [], []
    for seed in range(2):
        here, there = mp.Pipe(duplex=False)
        walkers.append(mp.Process(target=collect, args=(seed, there), daemon=True))
        walkers[-1].start()
        there.close()
        pipes.append(here)
    value = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(value.parameters(), lr=1e-2)
    for step in range(600):
        states, gains = pipes[step % 2].recv()
        loss = nn.functional.mse_loss(value(torch.from_numpy(states)).squeeze(1), torch.from_numpy(gains))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for walker in walkers:
        walker.kill()
        walker.join()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
