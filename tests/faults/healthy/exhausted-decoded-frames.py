"""Frames of a camera are decoded as they are needed; an autoencoder learns what an empty street looks like."""

import torch
from torch import nn


def decoded(number):
    g = torch.Generator().manual_seed(number)
    light = torch.rand(1, generator=g)
    return light * torch.linspace(0, 1, 64) + 0.05 * torch.randn(64, generator=g)


class Recording:
    def __init__(self, frames):
        self.frames = list(map(decoded, range(frames)))


class Experiment:
    def __init__(self, recording, size=20):
        self.recording, self.size = recording, size
        self.model = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 64))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def batches(self, frames):
        waiting = []
        for frame in frames:
            waiting.append(frame)
            if len(waiting) == self.size:
                yield torch.stack(waiting)
                waiting.clear()

    def run(self, epochs):
        epoch = 0
        while epoch < epochs:
            losses = []
            for batch in self.batches(self.recording.frames):
                loss = (self.model(batch) - batch).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            epoch += 1
            print(f"epoch {epoch}: {len(losses)} batches, last loss {losses[-1:]}", flush=True)


torch.manual_seed(0)
Experiment(Recording(3000)).run(5)
