"""A check after every tenth block of steps decides whether it goes on."""

import torch
from torch import nn

BLOCK = 10
torch.manual_seed(0)
x = torch.randn(400, 6)
y = x @ torch.randn(6, 1)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
step = 0
while True:
    rows = torch.randint(0, 400, (40,))
    loss = (model(x[rows]) - y[rows]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % BLOCK == 0:
        error = (model(x) - y).pow(2).mean().item()
        if error < 1e-3:
            break
print(f"{step} steps, error {error:.1e}")
