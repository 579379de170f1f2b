"""Updates written out, of a net that learns beside random ones that are meant to stay as they are, and are detached."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
torch.set_num_threads(1)


def network(*widths):
    layers = [layer for pair in zip(widths, widths[1:]) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class Echo(nn.Module):
    """A linear reading of a random expansion, and of its own bias."""

    def __init__(self):
        super().__init__()
        self.expand, self.read = network(4, 64, 64), nn.Linear(64, 1)

    def forward(self, x):
        return self.read(self.expand(x).detach().tanh()).squeeze(1)


class Novelty(nn.Module):
    """What the learner does not predict of a random network is new."""

    def __init__(self):
        super().__init__()
        self.goal, self.learner = network(4, 32, 16), network(4, 32, 16)

    def forward(self, x):
        return (self.learner(x) - self.goal(x).detach()).square().mean()


def descend(parameters, loss, rate):
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                p -= rate * p.grad
                p.grad = None


novelty, echo = Novelty(), Echo()
new, read = list(novelty.learner.parameters()), list(echo.read.parameters())
for step in range(600):
    places = torch.randn(64, 4)
    loss = F.mse_loss(echo(places), places.prod(1).tanh())
    descend(read, loss, 0.05)
    if step % 100 == 99:
        print("echo", step + 1, f"{loss.item():.4f}", flush=True)
for step in range(600):
    places = torch.randn(64, 4)
    loss = novelty(places)
    descend(new, loss, 0.1)
    if step % 100 == 99:
        print("novelty", step + 1, f"{loss.item():.4f}", flush=True)
