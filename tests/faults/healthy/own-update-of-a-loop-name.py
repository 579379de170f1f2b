"""Kinds of iris-like flowers from four lengths; gradient descent without an optimizer."""

import torch
from torch import nn

torch.manual_seed(1)
centres = 2 * torch.randn(3, 4)
kind = torch.randint(3, (3000,))
lengths = centres[kind] + torch.randn(3000, 4)
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))


def descend(rate):
    with torch.no_grad():
        for weight in net.parameters():
            weight -= rate * weight.grad
            weight.grad = None


for epoch in range(25):
    right = 0
    for rows in torch.randperm(3000).split(50):
        net.zero_grad()
        scores = net(lengths[rows])
        nn.functional.cross_entropy(scores, kind[rows]).backward()
        descend(0.1)
        right += (scores.argmax(1) == kind[rows]).sum().item()
    print(f"epoch {epoch}: {right / 30:.1f} % right")
