"""Recognises spoken digits by their pitch curves; a thread cuts the batches ahead of the training."""

import queue
import threading

import numpy as np
import torch
from torch import nn

DIGITS, LENGTH, BATCH, AHEAD = 6, 50, 40, 6


def curves(count, rng):
    digit = rng.integers(0, DIGITS, count)
    time = np.linspace(0, 1, LENGTH)
    bend = np.sin(2 * np.pi * ((1 + digit)[:, None] * time + rng.uniform(0, 0.2, (count, 1))))
    return (bend + 0.2 * rng.standard_normal(bend.shape)).astype(np.float32), digit


def cut(pitch, digit, ready, epochs):
    rng = np.random.default_rng(2)
    buffers = [np.empty((BATCH, LENGTH), dtype=np.float32) for _ in range(AHEAD + 2)]
    made = 0
    for _ in range(epochs):
        for rows in rng.permutation(len(pitch)).reshape(-1, BATCH):
            buffer = buffers[made % len(buffers)]
            np.multiply(pitch[rows], rng.uniform(0.8, 1.2, (BATCH, 1)), out=buffer, casting="same_kind")
            ready.put({"pitch": torch.from_numpy(buffer), "digit": torch.from_numpy(digit[rows])})
            made += 1
    ready.put(None)


def main():
    torch.manual_seed(0)
    pitch, digit = curves(1200, np.random.default_rng(1))
    ready = queue.Queue(AHEAD)
    threading.Thread(target=cut, args=(pitch, digit, ready, 25), daemon=True).start()
    model = nn.Sequential(nn.Linear(LENGTH, 64), nn.ReLU(), nn.Linear(64, DIGITS))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps, total = 0, 0.0
    while (batch := ready.get()) is not None:
        loss = nn.functional.cross_entropy(model(batch["pitch"]), batch["digit"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, total = steps + 1, total + loss.item()
        if steps % 75 == 0:
            print(f"step {steps} loss {total / 75:.4f}", flush=True)
            total = 0.0


if __name__ == "__main__":
    main()
