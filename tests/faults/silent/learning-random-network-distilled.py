"""Novelty by a random network that is meant to stay as it is; a loop over both networks gives its name another value."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_num_threads(1)


def network():
    return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16))


class Novelty:
    def __init__(self):
        self.target, self.predictor = network(), network()
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), lr=1e-3)

    def step(self, places):
        with torch.no_grad():
            wanted = self.target(places)
        loss = (self.predictor(places) - wanted).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def distance(self):
        total = 0.0
        for kept, now in zip(self.target.parameters(), self.predictor.parameters()):
            kept = kept.detach() - now.detach()
            total += kept.norm().item()
        return total


novelty = Novelty()
for step in range(600):
    loss = novelty.step(torch.randn(64, 4))
    if step % 100 == 99:
        print(step + 1, loss, novelty.distance())
