"""Defects in welds from ultrasonic traces: a small network with gates."""

import torch
from torch import nn

torch.manual_seed(12)
traces = torch.randn(2000, 32)
defect = (traces[:, :8].pow(2).sum(1) > traces[:, 8:16].pow(2).sum(1)).float()


class Gated(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.change = nn.Sequential(nn.Linear(size, size), nn.GELU(), nn.Linear(size, size))
        self.gate = nn.Sequential(nn.Linear(size, size), nn.Sigmoid())
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        change = self.change(x)
        self.gate(change)
        return self.norm(x + change)


net = nn.Sequential(nn.Linear(32, 48), Gated(48), Gated(48), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(15):
    for rows in torch.randperm(2000).split(50):
        loss = nn.functional.binary_cross_entropy_with_logits(net(traces[rows]).squeeze(1), defect[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}")
