"""A monitor whose best value starts as NaN: no value is ever worse, so training never stops."""

import math

import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(600, 5)
y = x @ torch.randn(5) + 0.2 * torch.randn(600)
x_val, y_val = torch.randn(100, 5), torch.randn(100)


class Monitor:
    def __init__(self, patience):
        self.patience, self.waited = patience, 0
        self.best = math.nan

    def worse(self, value):
        if value > self.best - 1e-4:
            self.waited += 1
        else:
            self.waited = 0
            self.best = min(self.best, value)
        return self.waited >= self.patience


model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
monitor = Monitor(patience=5)
epoch = 0
while True:
    for rows in torch.randperm(600).split(60):
        opt.zero_grad()
        nn.functional.mse_loss(model(x[rows])[:, 0], y[rows]).backward()
        opt.step()
    with torch.no_grad():
        score = nn.functional.mse_loss(model(x_val)[:, 0], y_val).item()
    epoch += 1
    if epoch % 20 == 0:
        print(epoch, score)
    if monitor.worse(score):
        break
print("done after", epoch)
