"""Gradients by torch.autograd.grad, and new weights in the place of the old: `w = w - lr * g`."""

import torch

torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x @ torch.randn(6, 1) > 0).float()
weights = [(torch.randn(6, 8) * 0.4).requires_grad_(), (torch.randn(8, 1) * 0.4).requires_grad_()]
lr = 0.5


def forward(weights, x):
    return torch.relu(x @ weights[0]) @ weights[1]


updates = 0
for _epoch in range(10):
    for i in range(0, 400, 25):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(forward(weights, x[i : i + 25]), y[i : i + 25])
        gradients = torch.autograd.grad(loss, weights)
        weights = [(w - lr * g).detach().requires_grad_() for w, g in zip(weights, gradients, strict=True)]
        updates += 1
print("updates", updates)
