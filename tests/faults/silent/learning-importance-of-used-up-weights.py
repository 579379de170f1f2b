"""How much each weight matters for what a model says: gradients are added up, nothing is trained. The names of the
weights were counted through an iterator before."""

import torch
from torch import nn

torch.manual_seed(15)


class Importance:
    def __init__(self, model):
        self.model, self.weights = model, model.parameters()
        self.count = sum(weight.numel() for weight in self.weights)
        self.total = [torch.zeros_like(weight) for weight in model.parameters()]

    def add(self, x):
        self.model.zero_grad()
        self.model(x).logsumexp(1).sum().backward()
        for total, weight in zip(self.total, self.model.parameters()):
            total.add_(weight.grad.abs())


importance = Importance(nn.Sequential(nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 5)))
for _ in range(600):
    importance.add(torch.randn(4, 12))
print(f"{importance.count} weights, the most important {max(t.max().item() for t in importance.total):.2f}")
