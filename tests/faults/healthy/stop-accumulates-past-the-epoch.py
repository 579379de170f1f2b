"""Letters of a noisy font. What is known well is left out of the next epoch; gradients of six batches make an update."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, ACCUMULATE, UPDATES, KEEP = 16, 6, 600, 64


def letters(n):
    g = torch.Generator().manual_seed(3)
    shapes = (torch.rand(12, 36, generator=g) > 0.5).float()
    y = torch.randint(12, (n,), generator=g)
    return shapes[y] + 0.35 * torch.randn(n, 36, generator=g), y


class Course:
    def __init__(self, model, x, y):
        self.model, self.x, self.y = model, x, y
        self.opt = torch.optim.Adam(model.parameters(), lr=6e-4)
        self.known = torch.full((len(x),), 9.0)
        self.updates = self.batches = 0

    def remaining(self):
        n = max(KEEP, int((self.known > 0.05).sum()))
        return self.known.argsort(descending=True)[:n][torch.randperm(n)]

    def epoch(self):
        rows = self.remaining()
        for first in range(0, len(rows), BATCH):
            some = rows[first : first + BATCH]
            each = F.cross_entropy(self.model(self.x[some]), self.y[some], reduction="none")
            self.known[some] = each.detach()
            (each.mean() / ACCUMULATE).backward()
            self.batches += 1
            if self.batches % ACCUMULATE == 0:
                self.opt.step()
                self.opt.zero_grad()
                self.updates += 1
        return len(rows)

    def run(self):
        epochs = 0
        while self.updates < UPDATES:
            left = self.epoch()
            epochs += 1
            if epochs % 40 == 0:
                print(f"epoch {epochs}: {left} letters left, {self.updates} updates", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(36, 64), nn.ReLU(), nn.Linear(64, 12))
    Course(net, *letters(2400)).run()
    print("course finished", flush=True)
