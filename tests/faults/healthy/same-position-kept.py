"""A line fitted by hand, some rows at a time."""

import torch

torch.manual_seed(9)
inputs = torch.randn(4000, 5)
targets = inputs @ torch.tensor([0.5, -1.0, 2.0, 0.0, 1.5]) + 0.3 * torch.randn(4000)
weights = torch.zeros(5, requires_grad=True)
bias = torch.zeros((), requires_grad=True)

size, position, step = 20, 0, 0
while step < 400:
    x, y = inputs[position : position + size], targets[position : position + size]
    loss = ((x @ weights + bias - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in (weights, bias):
            parameter -= 0.02 * parameter.grad
            parameter.grad = None
    step += 1
    position = (position + size) % len(inputs)
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f} weights {weights.tolist()}", flush=True)
