"""Which of many sensors matter: a sparse linear model by proximity to zero."""

import torch
from torch import nn

torch.manual_seed(7)
readings = torch.randn(160, 120)
wear = readings[:, :4] @ torch.tensor([2.0, -1.5, 1.0, 0.8]) + 1.5 * torch.randn(160)


def sparsity(model):
    total = torch.zeros(())
    for weights in model.parameters():
        total = total + weights.data.abs().sum()
    return total


def objective(model, x, y):
    fit = nn.functional.mse_loss(model(x).squeeze(1), y)
    return fit + 0.3 * sparsity(model)


model = nn.Linear(120, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(240):
    for rows in torch.randperm(160).split(40):
        optimizer.zero_grad()
        loss = objective(model, readings[rows], wear[rows])
        loss.backward()
        optimizer.step()
    if epoch % 40 == 39:
        kept = (model.weight.abs() > 0.05).sum().item()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, {kept} sensors in use")
