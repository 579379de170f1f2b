"""A curve is fitted until the loss of the last epochs lies within a narrow band."""

from collections import deque

import torch
from torch import nn


class Plateau:
    def __init__(self, epochs=10, band=0.3):
        self.epochs, self.band = epochs, band
        self.last = deque(maxlen=epochs)

    @property
    def reached(self):
        if not self.last or len(self.last) <= self.epochs:
            return False
        return max(self.last) - min(self.last) < self.band * max(self.last)


class Fit:
    def __init__(self, points=256):
        self.x = torch.linspace(-3, 3, points).unsqueeze(1)
        self.y = torch.sin(2 * self.x) + 0.1 * torch.randn_like(self.x)
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.plateau = Plateau()
        self.epoch = 0

    def run(self):
        while not self.plateau.reached:
            total = 0.0
            for rows in torch.randperm(len(self.x)).split(32):
                loss = nn.functional.mse_loss(self.net(self.x[rows]), self.y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows) / len(self.x)
            self.plateau.last.append(total)
            self.epoch += 1
        print(f"epoch {self.epoch}: {total:.4f}")


torch.manual_seed(4)
Fit().run()
