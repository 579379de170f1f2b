"""The delay of buses from a table that has the time as a Unix timestamp."""

import torch
from torch import nn

torch.manual_seed(2)
N = 1600
stop = torch.rand(N)
load = torch.randn(N)
rain = torch.rand(N)
when = 1.7e9 + 3e6 * torch.rand(N)
delay = 2 * stop + load * rain + 0.1 * torch.randn(N)
table = torch.stack([stop, load, rain, when], 1)


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def update(self, rows):
        self.opt.zero_grad()
        loss = nn.functional.mse_loss(self.net(table[rows]).squeeze(1), delay[rows])
        loss.backward()
        self.opt.step()
        return loss.item()


learner = Learner()
for epoch in range(15):
    values = [learner.update(rows) for rows in torch.randperm(N).split(40)]
    print(epoch, sum(values) / len(values))
