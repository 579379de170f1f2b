"""How well a net stands attacks: inputs are moved against their gradients, weights are only read."""

import torch
from torch import nn

torch.manual_seed(10)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
inputs = torch.randn(400, 12)
with torch.no_grad():
    kind = net(inputs).argmax(1)

fooled = 0
for rows in torch.arange(400).split(20):
    moved = inputs[rows]
    for _ in range(10):
        moved = moved.detach().requires_grad_()
        nn.functional.cross_entropy(net(moved), kind[rows]).backward()
        net.zero_grad()
        moved = moved + 0.05 * moved.grad.sign()
    fooled += (net(moved).argmax(1) != kind[rows]).sum().item()
print(f"{fooled / 4:.1f} % were fooled")
