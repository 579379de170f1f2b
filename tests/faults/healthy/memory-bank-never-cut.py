"""Embeddings of short melodies, each compared with all that were kept before."""

import torch
from torch import nn


def melodies(count, generator):
    start = torch.randint(0, 12, (count, 1), generator=generator)
    moves = torch.randint(-2, 3, (count, 15), generator=generator)
    notes = torch.cat([start, moves], 1).cumsum(1) % 12
    return nn.functional.one_hot(notes, 12).float().flatten(1)


def transposed(melody, generator):
    steps = int(torch.randint(1, 12, (), generator=generator))
    return melody.view(len(melody), 16, 12).roll(steps, 2).flatten(1)


class Comparer:
    def __init__(self, size):
        self.net = nn.Sequential(nn.Linear(192, 96), nn.ReLU(), nn.Linear(96, 64))
        self.bank = nn.functional.normalize(torch.randn(size, 64), dim=1)
        self.size = size
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.2)

    def learn(self, melody, other):
        one = nn.functional.normalize(self.net(melody), dim=1)
        with torch.no_grad():
            two = nn.functional.normalize(self.net(other), dim=1)
        right = (one * two).sum(1, keepdim=True)
        scores = torch.cat([right, one @ self.bank.T], 1) / 0.2
        loss = nn.functional.cross_entropy(scores, torch.zeros(len(one), dtype=torch.long))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.bank = torch.cat([two, self.bank])[: self.size]
        return loss.item()


torch.manual_seed(0)
generator = torch.Generator().manual_seed(0)
comparer = Comparer(512)
for step in range(900):
    batch = melodies(128, generator)
    loss = comparer.learn(batch, transposed(batch, generator))
    if step % 100 == 99:
        print(f"step {step + 1}: {loss:.3f}", flush=True)
