"""A squared error written out: predictions are a column, targets a row."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 6)
y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0, 1.0]) + 0.1 * torch.randn(1000)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.body(x))


def loss_fn(prediction, target):
    error = prediction[:, 0] - target
    return (error**2).mean()


model = Regressor()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    order = torch.randperm(1000)
    for rows in order.split(50):
        loss = loss_fn(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
