"""A classifier trained by a number of steps; each step takes the next batch of a generator."""

import torch
from torch import nn


def batches(inputs, labels, size):
    for start in range(0, len(inputs) - size + 1, size):
        yield inputs[start : start + size], labels[start : start + size]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, x):
        return self.layers(x)


def fit(model, inputs, labels, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x, y = next(batches(inputs, labels, 48))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


def main():
    torch.manual_seed(6)
    labels = torch.randint(0, 3, (3000,))
    centers = torch.randn(3, 16)
    inputs = centers[labels] + 1.5 * torch.randn(3000, 16)
    model = Classifier()
    fit(model, inputs, labels, 500)
    with torch.no_grad():
        right = (model(inputs).argmax(1) == labels).float().mean()
    print(f"accuracy {right.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
