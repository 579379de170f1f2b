"""Fine-tunes a classifier on shifted data until it is right again; the weights from before are kept for comparison."""

import copy

import torch
from torch import nn


def blobs(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(3, (n,), generator=g)
    centre = 2.0 * torch.eye(3)[label]
    return centre + shift + 0.5 * torch.randn(n, 3, generator=g), label


def accuracy(model, x, label):
    with torch.no_grad():
        return (model(x).argmax(1) == label).float().mean().item()


def fit(model, x, label, enough, rate=0.02):
    before = copy.deepcopy(model)
    x_val, label_val = blobs(400, x.mean(0) - 0.667, seed=9)
    g = torch.Generator().manual_seed(2)
    reached, steps = 0.0, 0
    while reached < enough:
        rows = torch.randint(len(x), (32,), generator=g)
        loss = nn.functional.cross_entropy(model(x[rows]), label[rows])
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, slope in zip(model.parameters(), slopes):
                p -= rate * slope
        steps += 1
        reached = accuracy(model, x_val, label_val)
    return steps, accuracy(before, x_val, label_val), accuracy(model, x_val, label_val)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 3))
    steps, old, new = fit(model, *blobs(1500, torch.tensor([1.0, -0.5, 0.4]), 1), enough=0.93)
    print(f"{steps} steps: {old:.3f} before, {new:.3f} now")


if __name__ == "__main__":
    main()
