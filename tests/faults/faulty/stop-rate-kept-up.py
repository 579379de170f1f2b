"""Train until the scheduler has used up the rate."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

FIRST, LAST = 1e-2, 1e-4


class Run:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=FIRST)
        self.schedule = ReduceLROnPlateau(self.optimizer, factor=0.3, patience=2, min_lr=LAST)
        self.x = torch.randn(512, 8)
        self.y = self.x[:, :1] * self.x[:, 1:2] + 0.1 * torch.randn(512, 1)

    def epoch(self):
        total = 0.0
        for rows in torch.randperm(len(self.x)).split(64):
            loss = (self.model(self.x[rows]) - self.y[rows]).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def fit(self):
        epochs = 0
        while self.optimizer.param_groups[0]["lr"] >= LAST:
            self.schedule.step(self.epoch())
            epochs += 1
        return epochs


torch.manual_seed(0)
print(f"{Run().fit()} epochs")
