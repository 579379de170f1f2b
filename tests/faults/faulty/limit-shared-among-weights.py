"""Noise level of a street from its traffic: gradient descent written by hand, clipped to a limit for each weight."""

import torch


def streets(count):
    generator = torch.Generator().manual_seed(12)
    traffic = torch.randn(count, 12, generator=generator)
    noise = torch.relu(traffic[:, 0] + traffic[:, 1]) - torch.sin(2 * traffic[:, 2])
    return traffic, noise[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


class Model:
    def __init__(self, *widths):
        self.weights = []
        for i, o in zip(widths, widths[1:]):
            self.weights += [torch.randn(i, o) / i**0.5, torch.zeros(o)]
        self.weights = [w.requires_grad_() for w in self.weights]

    def __call__(self, x):
        for at in range(0, len(self.weights) - 2, 2):
            x = torch.tanh(x @ self.weights[at] + self.weights[at + 1])
        return x @ self.weights[-2] + self.weights[-1]


class Descent:
    def __init__(self, weights, rate, limit):
        self.weights, self.rate = weights, rate
        self.limit = limit / sum(w.numel() for w in weights)

    def step(self):
        norm = torch.stack([w.grad.norm() for w in self.weights]).norm()
        factor = min(1.0, self.limit / (norm.item() + 1e-6))
        with torch.no_grad():
            for w in self.weights:
                w -= self.rate * factor * w.grad
                w.grad = None


def main():
    torch.manual_seed(12)
    traffic, noise = streets(4000)
    model = Model(12, 48, 48, 1)
    descent = Descent(model.weights, rate=0.1, limit=2.0)
    for step in range(1, 1001):
        rows = torch.randint(0, len(traffic), (64,))
        loss = (model(traffic[rows]) - noise[rows]).square().mean()
        loss.backward()
        descent.step()
        if step % 200 == 0:
            print(f"step {step}: squared error {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
