"""Load of households, streamed from an export; a recurrent forecaster with a trainer of its own."""

import csv
import math
import random
import tempfile

import torch
from torch import nn

PAST, AHEAD = 16, 2


def export(file, rows):
    out = csv.writer(file)
    for number in range(rows):
        shift = random.random() * 6
        out.writerow([number, *(f"{math.sin(0.4 * t + shift):.4f}" for t in range(PAST + AHEAD))])
    file.flush()


class ExportStream:
    def __init__(self, path, size):
        self.handle = open(path, newline="")
        self.rows = csv.reader(self.handle)
        self.size = size

    def batches(self):
        chunk = []
        for row in self.rows:
            chunk.append([float(value) for value in row[1:]])
            if len(chunk) == self.size:
                yield torch.tensor(chunk)
                chunk = []


class Trainer:
    def __init__(self, stream):
        self.stream = stream
        self.net, self.head = nn.GRU(1, 24, batch_first=True), nn.Linear(24, AHEAD)
        self.optimizer = torch.optim.Adam([*self.net.parameters(), *self.head.parameters()], lr=3e-3)

    def epoch(self):
        total = 0.0
        for window in self.stream.batches():
            states, _ = self.net(window[:, :PAST, None])
            loss = (self.head(states[:, -1]) - window[:, PAST:]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total


def main():
    torch.manual_seed(0)
    random.seed(0)
    with tempfile.NamedTemporaryFile("w", newline="") as file:
        export(file, 2000)
        trainer = Trainer(ExportStream(file.name, 25))
        for epoch in range(6):
            print(f"epoch {epoch} sum of losses {trainer.epoch():.4f}", flush=True)


if __name__ == "__main__":
    main()
