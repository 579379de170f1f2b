"""Each row is an estimate that is kept from epoch to epoch: refined in place, then copied into the batch."""

import torch
from torch import nn

torch.manual_seed(6)
true = torch.randn(400, 16)
seen = true + 0.5 * torch.randn(400, 16)
target = (true[:, :4] * true[:, 4:8]).sum(1, keepdim=True)
estimates = torch.zeros(400, 16)
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


class Filter:
    def __init__(self, estimates):
        self.estimates = estimates

    def refined(self, place):
        reading = seen[place] + 0.2 * torch.randn(16)
        self.estimates[place] += 0.2 * (reading - self.estimates[place])
        return self.estimates[place]


kept = Filter(estimates)
for epoch in range(60):
    for begin in range(0, 400, 20):
        x = torch.stack([kept.refined(place) for place in range(begin, begin + 20)])
        loss = ((net(x) - target[begin : begin + 20]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
