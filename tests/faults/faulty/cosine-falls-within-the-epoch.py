"""A cosine that should fall over the whole training falls to nothing within the first epoch."""

import math

import numpy as np
import torch
from torch import nn

torch.manual_seed(3)
rng = np.random.default_rng(3)
X = torch.from_numpy(rng.normal(size=(2000, 16)).astype("float32"))
Y = X[:, :4].argmax(1)
EPOCHS, BATCH = 16, 100


class Run:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(16, 96), nn.ReLU(), nn.Linear(96, 4))
        self.optim = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.total = len(X) // BATCH
        self.done = 0

    def set_rate(self):
        share = min(1.0, self.done / self.total)
        for g in self.optim.param_groups:
            g["lr"] = 0.05 * 0.5 * (1 + math.cos(math.pi * share)) + 1e-9

    def epoch(self):
        for rows in np.array_split(rng.permutation(len(X)), len(X) // BATCH):
            self.set_rate()
            loss = nn.functional.cross_entropy(self.net(X[rows]), Y[rows])
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            self.done += 1
        return loss.item()


run = Run()
for e in range(EPOCHS):
    print(e, run.epoch())
