"""Well readings were standardised, then gaps were filled with a code; one full batch with L-BFGS."""

import torch
from torch import nn

torch.manual_seed(1)
n = 400
readings = torch.randn(n, 6)
level = torch.sin(readings[:, 0]) + 0.5 * readings[:, 3] + 0.1 * torch.randn(n)
missing = torch.rand(n, 6) < torch.tensor([0.0, 0.06, 0.0, 0.04, 0.0, 0.0])
readings[missing] = 0.0

net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
lbfgs = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=10)


def closure():
    lbfgs.zero_grad()
    loss = ((net(readings)[:, 0] - level) ** 2).mean()
    loss.backward()
    return loss


for it in range(15):
    print(it, float(lbfgs.step(closure)))
