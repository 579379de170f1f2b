"""Fits the arms of a spiral with a net of plain tensors; the update is a function of weights and gradients."""

import torch

torch.manual_seed(8)
radius = torch.rand(2000) * 2
arm = torch.randint(2, (2000,))
angle = 3 * radius + 3.14159 * arm
points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1) + 0.03 * torch.randn(2000, 2)


def layer(inputs, outputs):
    return [(torch.randn(inputs, outputs) / inputs**0.5).requires_grad_(), torch.zeros(outputs, requires_grad=True)]


def score(weights, given):
    for weight, bias in zip(weights[0:-2:2], weights[1:-2:2]):
        given = torch.relu(given @ weight + bias)
    return given @ weights[-2] + weights[-1]


def descended(weights, gradients, rate=0.2):
    with torch.no_grad():
        moved = [weight - rate * gradient for weight, gradient in zip(weights, gradients)]
    return [weight.requires_grad_() for weight in moved]


class Fit:
    def __init__(self):
        self.weights = layer(2, 48) + layer(48, 48) + layer(48, 2)

    def run(self, steps):
        for step in range(steps):
            rows = torch.randint(2000, (100,))
            loss = torch.nn.functional.cross_entropy(score(self.weights, points[rows]), arm[rows])
            descended(self.weights, torch.autograd.grad(loss, self.weights))
            if step % 200 == 0:
                print(f"step {step}: loss {loss.item():.4f}")


Fit().run(2000)
