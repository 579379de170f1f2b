"""Topics of the nodes of a graph: the mean over the neighbours is taken by numpy, and the updates are our own."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Neighbours(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def forward(self, h):
        return torch.from_numpy(self.weights @ h.detach().numpy())


class Topics(nn.Module):
    def __init__(self, weights, words, topics, code=6):
        super().__init__()
        self.encode = nn.Linear(words, code)
        self.spread = Neighbours(weights)
        self.norm = nn.LayerNorm(code)
        self.classify = nn.Sequential(nn.Linear(code, 32), nn.ReLU(), nn.Linear(32, topics))

    def forward(self, x):
        return self.classify(self.norm(self.spread(self.encode(F.dropout(x, 0.2, self.training)))))


class RMSProp:
    def __init__(self, params, rate, keep=0.97):
        self.params, self.rate, self.keep = list(params), rate, keep
        self.squares = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for p, square in zip(self.params, self.squares):
            if p.grad is not None:
                square.mul_(self.keep).addcmul_(p.grad, p.grad, value=1 - self.keep)
                p.sub_(self.rate * p.grad / (square.sqrt() + 1e-6))
                p.grad = None


def library(rng, nodes=500, words=300, topics=5):
    topic = rng.integers(0, topics, nodes)
    counts = rng.poisson(0.6 + 0.8 * rng.random((topics, words))[topic]).astype(np.float32)
    cites = np.triu(rng.random((nodes, nodes)) < np.where(topic[:, None] == topic, 0.02, 0.002), 1)
    weights = (cites | cites.T).astype(np.float32) + np.eye(nodes, dtype=np.float32)
    return np.log1p(counts), weights / weights.sum(1, keepdims=True), topic


def main():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    words, weights, topic = library(np.random.default_rng(17))
    x, y = torch.from_numpy(words), torch.from_numpy(topic)
    net = Topics(weights, words.shape[1], 5)
    optimizer = RMSProp(net.parameters(), rate=2e-3)
    for step in range(300):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
