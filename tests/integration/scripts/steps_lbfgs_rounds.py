"""LBFGS in rounds of a few iterations each."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 5)
y = x @ torch.randn(5, 1) + 0.1 * torch.randn(200, 1)
model = nn.Sequential(nn.Linear(5, 10), nn.Tanh(), nn.Linear(10, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=10)
closures = 0
for _round in range(40):

    def closure():
        global closures
        closures += 1
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
print("closures", closures)
