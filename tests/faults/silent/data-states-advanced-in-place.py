"""A net learns the flow of many pendulums while these are simulated: each group is advanced in place after its use."""

import torch
from torch import nn

torch.manual_seed(5)
states = torch.randn(1024, 2)
net = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def flow(state):
    return torch.stack([state[:, 1], -torch.sin(state[:, 0])], 1)


for step in range(4000):
    group = states[step % 16 * 64 : (step % 16 + 1) * 64]
    loss = (net(group) - flow(group)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    group += 0.05 * flow(group)
    if step % 500 == 0:
        print(f"step {step}: error {loss.item():.4f}")
