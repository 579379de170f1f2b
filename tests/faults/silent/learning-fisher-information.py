"""Which weights matter: squared gradients of the log-likelihood, sample by sample; nothing is trained."""

import torch
from torch import nn

torch.manual_seed(11)
net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 3))
anchor = [weight.detach().clone() for weight in net.parameters()]
importance = [torch.zeros_like(weight) for weight in net.parameters()]
for _ in range(500):
    net.zero_grad()
    scores = nn.functional.log_softmax(net(torch.randn(1, 10)), 1)
    drawn = torch.multinomial(scores.detach().exp(), 1).item()
    scores[0, drawn].backward()
    for kept, weight in zip(importance, net.parameters()):
        kept += weight.grad.pow(2) / 500
drift = sum((kept * (weight - was).pow(2)).sum() for kept, weight, was in zip(importance, net.parameters(), anchor))
print("most important", max(kept.max().item() for kept in importance), "drift", drift.item())
