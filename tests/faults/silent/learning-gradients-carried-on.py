"""Momentum without a second buffer: gradients are shrunk after each update, and the next ones are added to the rest."""

import torch
from torch import nn

torch.manual_seed(5)
inputs = torch.randn(3000, 10)
target = (inputs[:, :3].sum(1, keepdim=True) + inputs[:, 3:5].prod(1, keepdim=True)).tanh()
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))

for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(3000).split(50):
        loss = nn.functional.mse_loss(model(inputs[rows]), target[rows])
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.02 * parameter.grad
                parameter.grad *= 0.9
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 60:.4f}")
