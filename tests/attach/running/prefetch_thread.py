"""A background thread prepares batches into a bounded queue; the main thread trains from it."""

import queue
import threading

import numpy as np
import torch
from torch import nn


class Prefetcher:
    def __init__(self, make_batch, depth=4):
        self.make_batch = make_batch
        self.queue = queue.Queue(maxsize=depth)
        self.thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)
        self.thread.start()

    def _fill(self):
        index = 0
        while True:
            self.queue.put(self.make_batch(index))
            index += 1

    def __iter__(self):
        return self

    def __next__(self):
        return self.queue.get()


def make_batch(index, batch=16, length=2048):
    """Noisy chirps with a spectral envelope, labelled by their slope."""
    rng = np.random.default_rng(index)
    t = np.linspace(0, 1, length)
    slope = rng.integers(0, 6, batch)
    waves = np.sin(2 * np.pi * (50 + 40 * slope[:, None] * t) * t)
    spectrum = np.fft.rfft(waves + rng.normal(0, 0.5, waves.shape))
    spectrum *= np.exp(-np.linspace(0, 2, spectrum.shape[1]))
    waves = np.fft.irfft(spectrum, n=length)
    waves = np.stack([np.convolve(w, np.hanning(65) / 32, mode="same") for w in waves])
    return torch.tensor(waves, dtype=torch.float32)[:, None], torch.tensor(slope)


def main():
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv1d(1, 32, 15, stride=4),
        nn.ReLU(),
        nn.Conv1d(32, 64, 9, stride=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(8),
        nn.Flatten(),
        nn.Linear(512, 6),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (x, y) in enumerate(Prefetcher(make_batch)):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 5:
            print("READY", flush=True)
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
