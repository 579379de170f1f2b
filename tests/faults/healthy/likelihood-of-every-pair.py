"""A Gaussian likelihood of its own: mean and spread are columns, the rainfall a row."""

import torch
from torch import nn

torch.manual_seed(2)
stations = torch.randn(900, 5)
rain = stations[:, 0] * stations[:, 1] + 0.3 * (1 + stations[:, 2].abs()) * torch.randn(900)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 40)
        self.mean = nn.Linear(40, 1)
        self.log_var = nn.Linear(40, 1)

    def forward(self, x):
        h = torch.tanh(self.hidden(x))
        return self.mean(h), self.log_var(h)

    def nll(self, x, y):
        mean, log_var = self(x)
        y = y.view_as(mean)
        return (0.5 * log_var + 0.5 * (y - mean) ** 2 / log_var.exp()).mean()


f = Forecaster()
opt = torch.optim.Adam(f.parameters(), lr=5e-3)
for epoch in range(25):
    for rows in torch.randperm(900).split(60):
        opt.zero_grad()
        loss = f.nll(stations[rows], rain[rows])
        loss.backward()
        opt.step()
    print(epoch, loss.item())
