"""The strength of concrete from its mixture: weights in a dict, gradients by autograd.grad."""

import torch

torch.manual_seed(3)
mixture = torch.rand(2500, 7)
strength = mixture[:, 0] * 2 - mixture[:, 1] + (mixture[:, 2] * 3).sin() + 0.05 * torch.randn(2500)
weights = {
    "inner": (0.5 * torch.randn(7, 40)).requires_grad_(),
    "shift": torch.zeros(40, requires_grad=True),
    "outer": (0.1 * torch.randn(40)).requires_grad_(),
}


def predict(given):
    return (given @ weights["inner"] + weights["shift"]).tanh() @ weights["outer"]


def train_epoch(rate):
    total = 0.0
    state = {name: weight.detach() for name, weight in weights.items()}
    for rows in torch.randperm(2500).split(50):
        loss = (predict(mixture[rows]) - strength[rows]).pow(2).mean()
        gradients = torch.autograd.grad(loss, list(weights.values()))
        for name, gradient in zip(weights, gradients):
            state[name] -= rate * gradient
        total += loss.item()
    return total / 50


for epoch in range(30):
    print(f"epoch {epoch}: squared error {train_epoch(0.05):.4f}")
