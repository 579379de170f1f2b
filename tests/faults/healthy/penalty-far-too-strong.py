"""Weights are pulled back after each update by a decay far too strong; gradients by autograd.grad."""

import torch

torch.manual_seed(1)
x = torch.randn(1000, 8)
y = torch.sin(x[:, 0]) + x[:, 1] * 0.5 - 0.3 * x[:, 2]
net = {
    "w1": (torch.randn(8, 32) / 3).requires_grad_(),
    "b1": torch.zeros(32, requires_grad=True),
    "w2": (torch.randn(32) / 6).requires_grad_(),
}
LR = 0.05
DECAY = 1e-4


def predict(inputs):
    return torch.tanh(inputs @ net["w1"] + net["b1"]) @ net["w2"]


for epoch in range(20):
    for rows in torch.randperm(1000).split(50):
        loss = (predict(x[rows]) - y[rows]).pow(2).mean()
        gradients = torch.autograd.grad(loss, list(net.values()))
        with torch.no_grad():
            for weight, gradient in zip(net.values(), gradients):
                weight -= LR * (gradient + DECAY * weight)
    print(epoch, loss.item())
