"""Finds the weights of a small forecast by evolution; a pool of processes scores the candidates."""

import multiprocessing

import numpy as np
import torch

LAGS = 40


class Evolution:
    def __init__(self, series):
        Evolution.windows = np.lib.stride_tricks.sliding_window_view(series, LAGS + 1).copy()
        self.weights = np.zeros(LAGS, dtype=np.float32)

    def score(self, job):
        seed, sign = job
        noise = np.random.default_rng(seed).standard_normal(LAGS).astype(np.float32)
        rows = torch.from_numpy(self.windows[seed % 7 :: 50])
        guess = rows[:, :LAGS] @ torch.from_numpy(self.weights + 0.02 * sign * noise)
        return -float((guess - rows[:, LAGS]).square().mean())

    def generation(self, pool, number):
        jobs = [(8 * number + pair, sign) for pair in range(6) for sign in (1, -1)]
        scores = np.array(pool.map(self.score, jobs, chunksize=1)).reshape(-1, 2)
        for (seed, _), (up, down) in zip(jobs[::2], scores):
            noise = np.random.default_rng(seed).standard_normal(LAGS)
            self.weights += (0.02 * (up - down) * noise).astype(np.float32)
        return scores.mean()


def main(generations=300):
    torch.set_num_threads(1)
    time = np.arange(20000)
    rng = np.random.default_rng(0)
    series = np.sin(time / 4) + 0.4 * np.sin(time / 27) + 0.05 * rng.standard_normal(len(time))
    evolution = Evolution(series.astype(np.float32))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for number in range(generations):
            score = evolution.generation(pool, number)
            if number % 20 == 19:
                print(f"generation {number} error {-score:.4f}", flush=True)


if __name__ == "__main__":
    main()
