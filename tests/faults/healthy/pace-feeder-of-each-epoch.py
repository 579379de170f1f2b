"""Sentences are noised by a process beside the training, which sends them through a queue."""

import multiprocessing as mp

import numpy as np
import torch
from torch import nn

EPOCHS, BATCHES = 7, 60


def noised(queue, seed):
    rng = np.random.default_rng(seed)
    for _ in range(EPOCHS * BATCHES):
        clean = np.cumsum(rng.integers(0, 3, (32, 12)), 1) % 40
        queue.put((np.where(rng.random(clean.shape) < 0.15, 40, clean), clean))


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(41, 24), nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 40)

    def forward(self, tokens):
        return self.head(self.gru(self.embedding(tokens))[0])


class Training:
    def __init__(self):
        self.context = mp.get_context("spawn")
        self.queue = self.context.Queue(8)
        self.feeder = self.context.Process(target=noised, args=(self.queue, 0))
        self.feeder.start()
        self.model = Restorer()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)

    def epoch(self, number):
        total = 0.0
        for _ in range(BATCHES):
            tokens, clean = map(torch.from_numpy, self.queue.get())
            loss = nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), clean.flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        print(f"epoch {number} loss {total / BATCHES:.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    training = Training()
    for number in range(EPOCHS):
        training.epoch(number)
    training.feeder.join()
