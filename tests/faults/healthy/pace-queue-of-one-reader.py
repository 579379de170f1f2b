"""Batches come from a thread through a queue; decoding takes less than training."""

import queue
import random
import threading

import torch
from torch import nn

RECORDINGS, SECONDS, RATE = 60, 16, 220


CODES = torch.arange(256)
MAGNITUDE = torch.where(CODES >= 128, CODES - 128, 127 - CODES) / 127
LEVELS = torch.where(CODES >= 128, 1, -1) * (256**MAGNITUDE - 1) / 255


def decode(raw):
    """Mu-law, by a table."""
    return LEVELS[torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()]


class Reader(threading.Thread):
    def __init__(self, recordings, batches, size, into):
        super().__init__(daemon=True)
        self.recordings, self.batches, self.size, self.into = recordings, batches, size, into

    def run(self):
        for _ in range(self.batches):
            chosen = random.choices(range(len(self.recordings)), k=self.size)
            wave = torch.stack([decode(self.recordings[index]) for index in chosen])
            self.into.put((wave, wave.abs().mean(1, keepdim=True)))
        self.into.put(None)


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    recordings = [random.randbytes(SECONDS * RATE) for _ in range(RECORDINGS)]
    model = nn.Sequential(nn.Linear(SECONDS * RATE, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ready = queue.Queue(maxsize=4)
    Reader(recordings, 6000, 24, ready).start()
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
        if step % 1000 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
