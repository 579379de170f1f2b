"""A DataLoader, and an optimizer that is a class of the user's own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Momentum:
    def __init__(self, params, lr, beta=0.9):
        self.params = list(params)
        self.lr, self.beta = lr, beta
        self.velocity = [torch.zeros_like(p) for p in self.params]

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.velocity, strict=True):
            if p.grad is not None:
                v.mul_(self.beta).add_(p.grad)
                p.add_(v, alpha=-self.lr)


x = torch.randn(256, 8)
y = (x[:, :1] * x[:, 1:2]).tanh()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = Momentum(model.parameters(), lr=0.01)
updates = 0
for _epoch in range(6):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        updates += 1
print("updates", updates)
