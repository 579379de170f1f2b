"""Batches come from a thread through a queue; decoding a recording in Python takes longer than training on it."""

import queue
import random
import threading

import torch
from torch import nn

RECORDINGS, SECONDS, RATE = 60, 16, 220


def decode(raw):
    """Mu-law, byte by byte."""
    samples, level = [], 0
    for byte in raw:
        sign, magnitude = (1, byte - 128) if byte >= 128 else (-1, 127 - byte)
        level = sign * ((1 + 255) ** (magnitude / 127) - 1) / 255
        samples.append(level)
    return samples


class Reader(threading.Thread):
    def __init__(self, recordings, batches, size, into):
        super().__init__(daemon=True)
        self.recordings, self.batches, self.size, self.into = recordings, batches, size, into

    def run(self):
        for _ in range(self.batches):
            chosen = random.choices(range(len(self.recordings)), k=self.size)
            wave = torch.tensor([decode(self.recordings[index]) for index in chosen])
            self.into.put((wave, wave.abs().mean(1, keepdim=True)))
        self.into.put(None)


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    recordings = [random.randbytes(SECONDS * RATE) for _ in range(RECORDINGS)]
    model = nn.Sequential(nn.Linear(SECONDS * RATE, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ready = queue.Queue(maxsize=4)
    Reader(recordings, 900, 24, ready).start()
    step = 0
    while True:
        item = ready.get()
        if item is None:
            break
        x, y = item
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
